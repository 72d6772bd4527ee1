//! Every kind of response, sent through the whole pipeline.

use bytes::Bytes;
use core_domain::access::PublicScope;
use core_domain::kernel::{Caller, Error, Result};
use core_domain::port::UnitOfWork;
use core_http::kernel::{
    Cx, Endpoint, Event, EventStream, Html, Input, Media, MediaStream, Output, Redirect, get,
};
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::rows::of_rows;
use crate::world::Answer;

/// Makes an endpoint from a row and a handler that returns `$value`.
macro_rules! answering {
    ($row:expr, $answer:ty, $value:expr) => {{
        async fn handler(
            _: &Cx,
            _: PublicScope,
            _: &mut dyn UnitOfWork,
            _: Input,
        ) -> Result<$answer> {
            $value
        }
        $row.reads(handler)
    }};
}

fn row() -> core_http::kernel::Row {
    get("/api/v1/a", "a")
}

async fn get_response(row: Endpoint, headers: &[(&str, &str)]) -> Answer {
    let api = of_rows(vec![row]);
    api.send(&Caller::Anonymous, "GET", "/a", headers, Value::Null)
        .await
}

#[tokio::test]
async fn bytes_are_sent_with_their_content_type() {
    let csv = || {
        answering!(
            row().produces(&["text/csv"]),
            Media,
            Ok(Media {
                content_type: "text/csv",
                bytes: Bytes::from_static(b"a,b"),
            })
        )
    };
    let answer = get_response(csv(), &[("accept", "text/csv")])
        .await
        .expect(200);
    assert_eq!(
        (answer.header("content-type"), &answer.bytes[..]),
        ("text/csv", &b"a,b"[..])
    );
    get_response(csv(), &[("accept", "application/json")])
        .await
        .expect_error(406, "NOT_ACCEPTABLE");
    let described: Value =
        serde_json::from_slice(&of_rows(vec![csv()]).0.openapi().unwrap()).unwrap();
    let content = &described["paths"]["/api/v1/a"]["get"]["responses"]["200"]["content"];
    assert_eq!(
        *content,
        json!({ "text/csv": { "schema": { "type": "string" } } })
    );
}

#[tokio::test]
async fn an_undeclared_content_type_is_500() {
    let undeclared = answering!(
        row().produces(&["text/csv"]),
        Media,
        Ok(Media {
            content_type: "text/plain",
            bytes: Bytes::new(),
        })
    );
    get_response(undeclared, &[])
        .await
        .expect_error(500, "INTERNAL_ERROR");
}

#[tokio::test]
async fn a_stream_is_sent_piece_by_piece() {
    let pieces = answering!(row().produces(&["text/plain"]), MediaStream, {
        let pieces = ["one ", "two"].map(|piece| Ok::<_, Error>(Bytes::from(piece)));
        Ok(MediaStream::new("text/plain", stream::iter(pieces)))
    });
    let answer = get_response(pieces, &[]).await.expect(200);
    assert_eq!(&answer.bytes[..], b"one two");
    assert_eq!(
        (
            answer.header("content-type"),
            answer.header("content-length")
        ),
        ("text/plain", "")
    );
}

#[tokio::test]
async fn events_have_ids_names_and_data_of_one_line_each() {
    let events = answering!(row(), EventStream<serde_json::Value>, {
        let first = Event::json(&json!({ "text": "a\nb" }))?
            .name("log")
            .id("1\n\n2");
        let events = [first, Event::json(&7)?].map(Ok::<_, Error>);
        Ok(EventStream::new(stream::iter(events)))
    });
    let answer = get_response(events, &[("accept", "text/event-stream")])
        .await
        .expect(200);
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(answer.header("cache-control"), "no-cache");
    let text = std::str::from_utf8(&answer.bytes).unwrap();
    assert_eq!(
        text,
        "id: 1  2\nevent: log\ndata: {\"text\":\"a\\nb\"}\n\ndata: 7\n\n"
    );
}

#[tokio::test]
async fn a_redirect_has_a_location_and_requires_a_redirection_status() {
    let to = |row: core_http::kernel::Row| {
        answering!(
            row,
            Redirect,
            Ok(Redirect {
                location: "/elsewhere".to_owned()
            })
        )
    };
    let answer = get_response(to(row().success(&[StatusCode::FOUND])), &[])
        .await
        .expect(302);
    assert_eq!(
        (answer.header("location"), answer.bytes.len()),
        ("/elsewhere", 0)
    );
    get_response(to(row()), &[])
        .await
        .expect_error(500, "INTERNAL_ERROR");
    let broken = answering!(
        row().success(&[StatusCode::FOUND]),
        Redirect,
        Ok(Redirect {
            location: "a\nb".to_owned(),
        })
    );
    get_response(broken, &[])
        .await
        .expect_error(500, "INTERNAL_ERROR");
}

#[tokio::test]
async fn an_html_page_forbids_scripts_of_other_origins_and_frames() {
    let page = answering!(row(), Html, Ok(Html("<p>Hello".to_owned())));
    let answer = get_response(page, &[("accept", "text/html")])
        .await
        .expect(200);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let policy = answer.header("content-security-policy");
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"));
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(&answer.bytes[..], b"<p>Hello");
}

#[tokio::test]
async fn a_json_response_can_have_a_status_headers_and_an_entity_tag() {
    let both = &[StatusCode::OK, StatusCode::ACCEPTED];
    let json = || {
        answering!(row().success(both), core_http::kernel::Versioned<u32>, {
            let value = HeaderValue::from_static("/b");
            let output = Output::new(7).status(StatusCode::ACCEPTED);
            Ok(output.header(header::LOCATION, value).etag("3"))
        })
    };
    let answer = get_response(json(), &[("if-none-match", "\"3\"")])
        .await
        .expect(202);
    assert_eq!(
        (answer.json, answer.headers["location"].as_bytes()),
        (json!(7), &b"/b"[..])
    );
    assert_eq!(answer.headers["etag"], "\"3\"");
}

#[tokio::test]
async fn a_handler_that_panics_is_500_without_the_panic_message() {
    let panics = answering!(row(), (), panic!("internal detail"));
    let answer = get_response(panics, &[])
        .await
        .expect_error(500, "INTERNAL_ERROR");
    assert!(!answer.json.to_string().contains("internal detail"));
}
