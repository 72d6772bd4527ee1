//! Request and response bodies: streaming, size limits, and timeouts.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::mpsc;
use tower::ServiceExt;

use super::world::{Reply, World, config, delayed_reply, reply_with, session_request};
use core_domain::kernel::SuiteService;
use core_http::ServeOptions;
use core_http::gateway::{GatewayConfig, ServiceTimeouts};
use core_http::kernel::{Body, BoxError, bytes_body};

const PATH: &str = "/api/v1/platforms";
const DEPLOY: &str = "/api/v1/cli/platforms/p-1/deploy";

/// Returns a sender and a body that yields each piece sent to it.
pub(super) fn piecewise() -> (mpsc::UnboundedSender<&'static str>, Body) {
    let (sender, receiver) = mpsc::unbounded_channel::<&'static str>();
    let stream = futures_util::stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        let frame = Ok::<_, Infallible>(Frame::data(Bytes::from_static(piece.as_bytes())));
        Some((frame, receiver))
    });
    let body = StreamBody::new(stream).map_err(|never| -> BoxError { match never {} });
    (sender, Body::new(body))
}

/// Returns the reply with this body, for one request.
pub(super) fn reply_once(body: Body) -> Reply {
    let body = std::sync::Mutex::new(Some(body));
    reply_with(move || Response::new(body.lock().unwrap().take().unwrap()))
}

fn post(path: &str, body: Body) -> http::Request<Body> {
    session_request(path)
        .method(Method::POST)
        .body(body)
        .build()
}

#[tokio::test]
async fn line_46_a_streamed_request_body_reaches_the_service_complete() {
    let world = World::new();
    let (sender, body) = piecewise();
    for piece in ["one ", "two ", "three"] {
        sender.send(piece).unwrap();
    }
    drop(sender);
    assert_eq!(world.send(post(PATH, body)).await.status, 200);
    assert_eq!(&world.single_request().body[..], b"one two three");
}

#[tokio::test]
async fn line_46_a_response_streams_piece_by_piece() {
    let world = World::new();
    let (sender, body) = piecewise();
    world.set_reply(reply_once(body));
    let response = world
        .gateway
        .clone()
        .oneshot(session_request(PATH).build())
        .await
        .unwrap();
    let mut pieces = response.into_body().into_data_stream();
    for piece in ["first", "second"] {
        sender.send(piece).unwrap();
        assert_eq!(pieces.next().await.unwrap().unwrap(), piece);
    }
    drop(sender);
    assert!(pieces.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn line_49_a_response_that_pauses_for_a_minute_is_aborted() {
    let world = World::new();
    let (sender, body) = piecewise();
    world.set_reply(reply_once(body));
    let request = session_request(PATH).build();
    let response = world.gateway.clone().oneshot(request).await.unwrap();
    let mut pieces = response.into_body().into_data_stream();
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(50)).await;
        sender.send("piece").unwrap();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "piece");
    }
    let began = tokio::time::Instant::now();
    assert!(pieces.next().await.unwrap().is_err());
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn line_47_a_body_with_too_large_a_content_length_is_413_before_the_service_is_called() {
    let world = World::new();
    let request = session_request(PATH)
        .method(Method::POST)
        .header("content-length", "1048577");
    let answer = world
        .send(request.build())
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(answer.header("connection"), "close");
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_47_a_streamed_body_over_the_limit_is_413_and_never_completed() {
    let world = World::new();
    let answer = world
        .send(post(PATH, bytes_body(vec![b'x'; 1_048_577])))
        .await;
    let answer = answer.expect_error(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(answer.header("connection"), "close");
    assert!(world.received_requests().is_empty());
    let whole = world
        .send(post(PATH, bytes_body(vec![b'x'; 1_048_576])))
        .await;
    assert_eq!(whole.status, 200);
}

#[tokio::test]
async fn line_47_deployment_bodies_may_exceed_the_default_limit() {
    let world = World::new();
    let answer = world
        .send(post(DEPLOY, bytes_body(vec![b'x'; 3_000_000])))
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(world.single_request().body.len(), 3_000_000);
}

#[tokio::test(start_paused = true)]
async fn line_49_a_service_that_does_not_respond_within_30_seconds_is_504() {
    let world = World::new();
    world.set_reply(delayed_reply(Duration::from_secs(29)));
    assert_eq!(world.get(PATH).await.status, 200);
    world.set_reply(delayed_reply(Duration::from_secs(31)));
    let began = tokio::time::Instant::now();
    world.get(PATH).await.expect_error(504, "UPSTREAM_TIMEOUT");
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn line_49_a_long_poll_extends_the_response_timeout_by_its_wait() {
    let world = World::new();
    world.set_reply(delayed_reply(Duration::from_secs(40)));
    assert_eq!(
        world
            .get("/api/v1/provisioning/jobs/j?wait=20")
            .await
            .status,
        200
    );
    assert_eq!(
        world.get("/api/v1/provisioning/jobs/j?wait=5").await.status,
        504
    );
    world.set_reply(delayed_reply(Duration::from_secs(61)));
    assert_eq!(
        world
            .get("/api/v1/provisioning/jobs/j?wait=9999")
            .await
            .status,
        504
    );
}

#[tokio::test(start_paused = true)]
async fn line_49_a_slow_upload_does_not_count_as_response_time() {
    let world = World::new();
    let (sender, body) = piecewise();
    let upload = world.send(post(DEPLOY, body));
    let client = async move {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            sender.send("piece").unwrap();
        }
    };
    let (answer, ()) = tokio::join!(upload, client);
    assert_eq!(answer.status, 200);
}

#[tokio::test(start_paused = true)]
async fn line_49_an_upload_that_pauses_for_a_minute_is_400() {
    let world = World::new();
    let (sender, body) = piecewise();
    sender.send("piece").unwrap();
    let began = tokio::time::Instant::now();
    let answer = world.send(post(DEPLOY, body)).await;
    let answer = answer.expect_error(400, "BAD_REQUEST");
    assert_eq!(answer.header("connection"), "close");
    assert_eq!(began.elapsed().as_secs(), 60);
    assert!(world.received_requests().is_empty());
    drop(sender);
}

#[tokio::test]
async fn server_timing_is_sent_when_configured() {
    let mut config = config();
    config.server_timing = true;
    let answer = World::with(config).get(PATH).await;
    let timing = answer.header("server-timing");
    assert!(
        timing.starts_with("total;dur=") && timing.contains("upstream;dur="),
        "{timing}"
    );
    assert_eq!(World::new().get(PATH).await.header("server-timing"), "");
}

#[tokio::test]
async fn line_47_the_limits_of_bodies_are_configurable_per_kind_of_route() {
    let announce = |path, length: u64| {
        let request = session_request(path).method(Method::POST);
        let request = request.header("content-length", &length.to_string());
        request.build()
    };
    const MIB: u64 = 1_048_576;
    let limits = |json, deploy| GatewayConfig {
        body_limit: json,
        upload_limit: deploy,
        ..config()
    };
    for (config, json, deploy) in [(config(), MIB, 100 * MIB), (limits(10, 20), 10, 20)] {
        let world = World::with(config);
        for (path, limit) in [(PATH, json), (DEPLOY, deploy)] {
            let refused = world.send(announce(path, limit + 1)).await;
            refused.expect_error(413, "PAYLOAD_TOO_LARGE");
            let _ = world.send(announce(path, limit)).await.expect(200);
        }
    }
}

#[tokio::test]
async fn line_47_methods_and_media_types_are_refused_by_the_services() {
    let world = World::new();
    for status in [405_u16, 415] {
        world.set_reply(reply_with(move || {
            let response = Response::builder().status(status);
            let response = response.header("allow", "GET, HEAD");
            response.body(bytes_body("of the service")).unwrap()
        }));
        let answer = world
            .send(post(PATH, bytes_body("{}")))
            .await
            .expect(status);
        assert_eq!(answer.header("allow"), "GET, HEAD");
        assert_eq!(&answer.bytes[..], b"of the service");
    }
}

#[test]
fn line_49_the_default_timeouts_are_those_of_the_contract() {
    let seconds = Duration::from_secs;
    let gateway = GatewayConfig::default();
    assert_eq!(gateway.response_timeout, seconds(30));
    assert_eq!(gateway.upload_idle_timeout, seconds(60));
    assert_eq!(gateway.response_idle_timeout, seconds(60));
    let listener = ServeOptions::default();
    assert_eq!(listener.header_timeout, seconds(10));
    assert_eq!(listener.keep_alive_timeout, seconds(75));
    assert_eq!(listener.write_idle_timeout, seconds(60));
    assert_eq!(listener.body_times.idle, seconds(60));
    // A total limit exists for uploads only, as a defence against clients that send single bytes.
    assert_eq!(listener.body_times.total, seconds(15 * 60));
}

#[tokio::test(start_paused = true)]
async fn line_49_a_service_can_have_timeouts_of_its_own() {
    let mut config = config();
    let slow = ServiceTimeouts {
        response: Some(Duration::from_secs(90)),
        upload_idle: Some(Duration::from_secs(5)),
        response_idle: Some(Duration::from_secs(7)),
    };
    config.service_timeouts.insert(SuiteService::Cli, slow);
    let world = World::with(config);
    world.set_reply(delayed_reply(Duration::from_secs(80)));
    let _ = world.get(DEPLOY).await.expect(200);
    let _ = world.get(PATH).await.expect(504);

    let (sender, body) = piecewise();
    let began = tokio::time::Instant::now();
    let _ = world.send(post(DEPLOY, body)).await.expect(400);
    assert_eq!(began.elapsed().as_secs(), 5);
    drop(sender);

    let (sender, body) = piecewise();
    world.set_reply(reply_once(body));
    let request = session_request(DEPLOY).build();
    let response = world.gateway.clone().oneshot(request).await.unwrap();
    let began = tokio::time::Instant::now();
    let mut pieces = response.into_body().into_data_stream();
    assert!(pieces.next().await.unwrap().is_err());
    assert_eq!(began.elapsed().as_secs(), 7);
    drop(sender);
}

#[tokio::test(start_paused = true)]
async fn line_49_a_streaming_upload_and_download_have_no_total_limit() {
    let world = World::new();
    let hour = Duration::from_secs(3_600);
    let (sender, upload) = piecewise();
    let feed = async move {
        let began = tokio::time::Instant::now();
        while began.elapsed() < hour {
            sender.send("piece").unwrap();
            tokio::time::sleep(Duration::from_secs(50)).await;
        }
    };
    let (answer, ()) = tokio::join!(world.send(post(DEPLOY, upload)), feed);
    let _ = answer.expect(200);

    let (sender, download) = piecewise();
    world.set_reply(reply_once(download));
    let request = session_request(PATH).build();
    let response = world.gateway.clone().oneshot(request).await.unwrap();
    let mut pieces = response.into_body().into_data_stream();
    let began = tokio::time::Instant::now();
    while began.elapsed() < hour {
        sender.send("piece").unwrap();
        assert_eq!(pieces.next().await.unwrap().unwrap(), "piece");
        tokio::time::sleep(Duration::from_secs(50)).await;
    }
    drop(sender);
    assert!(pieces.next().await.is_none());
}
