//! The timeouts of request bodies.

use std::time::Duration;

use core_http::kernel::{Body, BodyTimes, ServiceOptions, ViaGateway};
use http::Method;
use http_body_util::StreamBody;

use super::rows::{CLIENT, Direct, from};

/// Returns a body of `pieces` pieces, each sent after a pause.
fn slow(pieces: usize, pause: Duration) -> Body {
    let frames = futures_util::stream::unfold(0, move |n| async move {
        tokio::time::sleep(pause).await;
        let piece = bytes::Bytes::from_static(b" ");
        let frame = Ok::<_, core_http::kernel::BoxError>(http_body::Frame::data(piece));
        (n < pieces).then_some((frame, n + 1))
    });
    Body::new(StreamBody::new(Box::pin(frames)))
}

#[tokio::test(start_paused = true)]
async fn a_body_may_pause_for_ten_seconds_and_take_thirty_in_total() {
    let direct = Direct::new();
    let seconds = Duration::from_secs;
    for (body, expected, took) in [
        (slow(2, seconds(9)), None, 27),
        (slow(1, seconds(11)), Some("arrive in time"), 10),
        (slow(1_000, seconds(9)), Some("arrive in time"), 30),
    ] {
        let began = tokio::time::Instant::now();
        let request = from(CLIENT, Method::POST, "/things");
        let request = request.header("content-type", "application/json");
        let answer = direct.send(request, body).await;
        assert_eq!(began.elapsed().as_secs(), took);
        let message = answer.json["error"]["message"].as_str().unwrap();
        match expected {
            // The spaces were read, but they are not valid JSON.
            None => assert_eq!(answer.code(), "MALFORMED_JSON"),
            Some(text) => {
                assert_eq!(answer.code(), "BAD_REQUEST");
                assert!(message.contains(text), "{message}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeouts_of_a_body_are_configurable() {
    let direct = Direct::with(|app| {
        app.options = ServiceOptions {
            body_times: BodyTimes {
                idle: Duration::from_secs(1),
                total: Duration::from_secs(2),
            },
            ..ServiceOptions::default()
        };
    });
    let began = tokio::time::Instant::now();
    let request = from(CLIENT, Method::POST, "/things").extension(ViaGateway);
    let request = request.header("content-type", "application/json");
    let answer = direct
        .send(request, slow(1_000, Duration::from_millis(900)))
        .await;
    assert_eq!(answer.code(), "BAD_REQUEST");
    assert_eq!(began.elapsed().as_secs(), 2);
}
