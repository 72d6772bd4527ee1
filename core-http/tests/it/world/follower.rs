//! A client that follows server-sent events.

use std::sync::Arc;

use core_domain::kernel::Caller;
use core_http::kernel::{Body, Draining, ViaGateway, empty_body};
use http::Request;
use http_body_util::BodyExt;

use super::Api;

pub(crate) struct Follower(Body);

impl Follower {
    pub(crate) async fn open(
        api: &Api,
        caller: &Caller,
        path: &str,
        draining: Option<Draining>,
        headers: &[(&str, &str)],
    ) -> Self {
        let mut request = Request::get(path)
            .header("accept", "text/event-stream")
            .extension(ViaGateway)
            .extension(Arc::new(caller.clone()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(draining) = draining {
            request = request.extension(draining);
        }
        let answer = api.0.answer(request.body(empty_body()).unwrap()).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self(answer.into_body())
    }

    /// Returns the text of the next event or heartbeat; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let frame = self.0.frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    }

    /// Returns the type of the next event; empty for a heartbeat.
    pub(crate) async fn next_type(&mut self) -> String {
        let text = self.next().await.unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("event: "));
        name.unwrap_or_default().to_owned()
    }
}
