//! The conditions that end an event stream.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::kernel::Role;
use core_http::gateway::{Gateway, ResolvedCredential};
use core_http::kernel::testing::member;
use core_http::kernel::{Body, Draining, bytes_body};
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::ServiceExt;

use super::over_http::{gateway_to, session_request_text};
use super::world::{
    FakeReply, KEY, SESSION, World, anonymous, owner, reply_with, resolves_to, session_request,
};
use crate::world::server::{Server, options};

const PATH: &str = "/api/v1/platforms/events";

/// Returns an endless response that sends a frame every ten seconds.
fn endless(content_type: &str) -> Response<Body> {
    let frames = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        Some((Ok(Frame::data(":\n\n".into())), ()))
    });
    let response = Response::builder().header("content-type", content_type);
    let body = Body::new(StreamBody::new(Box::pin(frames)));
    response.body(body).unwrap()
}

fn world() -> World {
    let world = World::new();
    world.set_reply(reply_with(|| endless("text/event-stream")));
    world
}

async fn open_stream(gateway: &Gateway, request: http::Request<Body>) -> Body {
    let answer = gateway.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.into_body()
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_the_server_stops_and_its_service_gets_the_draining_signal() {
    let world = world();
    let (stop, stopped) = watch::channel(false);
    let request = session_request(PATH).extension(Draining::new(stopped));
    let mut body = open_stream(&world.gateway, request.build()).await;
    assert!(
        world
            .single_request()
            .extensions
            .get::<Draining>()
            .is_some()
    );
    for _ in 0..3 {
        assert!(body.frame().await.unwrap().is_ok());
    }
    let began = Instant::now();
    let (end, _) = tokio::join!(body.frame(), async { stop.send_replace(true) });
    assert!(end.is_none());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_within_5_seconds_after_its_callers_credential_becomes_invalid() {
    let suspended = ResolvedCredential {
        suspended: true,
        ..owner()
    };
    let demoted = ResolvedCredential {
        caller: Arc::new(member("olga", "p-1", Role::MEMBER).unwrap()),
        ..owner()
    };
    for reply in [
        None,
        Some(resolves_to(suspended)),
        Some(resolves_to(demoted)),
        Some(FakeReply::Unavailable),
    ] {
        let world = world();
        let mut body = open_stream(&world.gateway, session_request(PATH).build()).await;
        for _ in 0..3 {
            assert!(body.frame().await.unwrap().is_ok());
        }
        match reply {
            Some(reply) => world.iam.reply_to(SESSION, reply),
            None => world.iam.forget(SESSION),
        }
        let began = Instant::now();
        assert!(body.frame().await.is_none());
        assert!(began.elapsed() <= Duration::from_secs(5));
    }
}

#[tokio::test(start_paused = true)]
async fn streams_of_the_service_key_and_other_responses_do_not_depend_on_a_session() {
    let world = world();
    let service = anonymous(PATH).header("authorization", &format!("Bearer {KEY}"));
    let mut of_service = open_stream(&world.gateway, service.build()).await;
    world.set_reply(reply_with(|| endless("text/plain")));
    let mut download = open_stream(&world.gateway, session_request(PATH).build()).await;
    world.iam.forget(SESSION);
    for _ in 0..3 {
        assert!(of_service.frame().await.unwrap().is_ok());
        assert!(download.frame().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_stopping_gateway_ends_the_streams_of_http_services_after_a_complete_chunk() {
    let (feed, fed) = watch::channel(());
    let fed = Arc::new(Mutex::new(Some(fed)));
    let service = tower::service_fn(move |_| {
        let fed = fed.lock().unwrap().clone();
        let first = futures_util::stream::once(async { Ok(Frame::data(":\n\n".into())) });
        let rest = futures_util::stream::once(async move {
            let _ = fed.unwrap().changed().await;
            Ok(Frame::data("never".into()))
        });
        let frames = futures_util::StreamExt::chain(first, rest);
        let response = Response::builder().header("content-type", "text/event-stream");
        let response = response.body(Body::new(StreamBody::new(Box::pin(frames))));
        async { Ok(response.unwrap_or_else(|_| Response::new(bytes_body("")))) }
    });
    let service = Server::start(service, options()).await;
    let gateway = Server::start(gateway_to(service.address), options()).await;
    let mut client = gateway.connect().await;
    let request = session_request_text("GET /api/v1/platforms/api/v1/events", "", "");
    client.write(&request).await;
    client.read_until(":\n\n").await;
    gateway.stop.send(()).unwrap();
    assert_eq!(client.read_to_close().await, "\r\n0\r\n\r\n");
    gateway.running.await.unwrap().unwrap();
    drop(feed);
}

#[tokio::test(start_paused = true)]
async fn line_49_an_event_stream_has_no_total_limit() {
    let world = world();
    let mut body = open_stream(&world.gateway, session_request(PATH).build()).await;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3_600) {
        assert!(body.frame().await.unwrap().is_ok());
    }
}
