//! Server-sent events, which have no end of their own: they end when the gateway's server stops, and when their caller would
//! be let in no more, or as somebody else.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use core_domain::gateway::Credential;
use core_domain::kernel::Caller;
use http::Response;
use http::header::CONTENT_TYPE;
use http_body::Frame;

use super::session_cache::SessionCache;
use crate::kernel::{Body, BoxError, Draining, TokenDigest};

/// How often a credential is resolved again. With the time that an answer about it is cached unless set otherwise, a service
/// in another process goes on for 5 seconds at the most.
const RESOLVE: Duration = Duration::from_secs(3);

/// The credential of a request, with the digest of its secret.
#[derive(Clone, Debug)]
pub(crate) struct Presented {
    pub(crate) credential: Credential,
    pub(crate) digest: TokenDigest,
}

/// What the answer to a request depends on for as long as it lasts.
#[derive(Debug)]
pub(crate) struct Lifetime {
    pub(crate) draining: Option<Draining>,
    pub(crate) sessions: Arc<SessionCache>,
    /// None for who needed no credential, or holds the service key.
    pub(crate) presented: Option<Presented>,
    pub(crate) caller: Arc<Caller>,
}

impl Lifetime {
    /// Waits until the server stops, or the caller would be let in no more.
    async fn over(self) {
        let draining = async {
            match self.draining {
                Some(mut draining) => draining.begun().await,
                None => pending().await,
            }
        };
        let refused = async {
            match self.presented {
                Some(presented) => refused(&self.sessions, &presented, &self.caller).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = draining => {}
            () = refused => {}
        }
    }
}

/// Waits until the credential is not that of the caller any more, or nobody can tell.
async fn refused(sessions: &SessionCache, presented: &Presented, caller: &Caller) {
    loop {
        tokio::time::sleep(RESOLVE).await;
        let resolved = sessions.resolve(&presented.credential, &presented.digest);
        match resolved.await {
            Ok(resolved) if !resolved.suspended && *resolved.caller == *caller => {}
            _ => return,
        }
    }
}

/// Tells whether an answer is of server-sent events.
pub(crate) fn is_event_stream(response: &Response<Body>) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

/// The body until that is over; then it ends.
pub(crate) fn limited(body: Body, lifetime: Lifetime) -> Body {
    Body::new(Limited {
        body,
        over: Box::pin(lifetime.over()),
    })
}

struct Limited {
    body: Body,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for Limited {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.over.as_mut().poll(cx).is_ready() {
            // Whatever else is asked of it: it has ended.
            self.over = Box::pin(std::future::ready(()));
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}
