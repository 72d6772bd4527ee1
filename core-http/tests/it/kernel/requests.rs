//! Incoming requests: bodies, methods, request ids, content types, and the service key.

use core_domain::kernel::Caller;
use core_http::kernel::bytes_body;
use core_http::kernel::testing::SERVICE_KEY;
use http::{Request, StatusCode};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::rows::{CLIENT, Direct, from};
use crate::world::{Answer, Api, World, operator, plain_member};

const STACKS: &str = "/api/v1/stacks";

async fn post_stack(api: &Api, content_type: &str, body: impl Into<bytes::Bytes>) -> Answer {
    let request = Request::post(STACKS)
        .header("content-type", content_type)
        .extension(std::sync::Arc::new(operator()))
        .body(bytes_body(body))
        .unwrap();
    api.raw(request).await
}

#[tokio::test]
async fn an_invalid_json_body_is_refused_with_the_error_envelope() {
    let api = World::new().stacks;
    let json = "application/json";
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(1024 * 1024));
    for (content_type, body, status, code) in [
        (json, "{".to_owned(), 400, "MALFORMED_JSON"),
        (
            json,
            r#"{"name":"a","name":"b"}"#.to_owned(),
            400,
            "MALFORMED_JSON",
        ),
        (json, "{} {}".to_owned(), 400, "MALFORMED_JSON"),
        (json, "[".repeat(100_000), 400, "MALFORMED_JSON"),
        (json, large, 413, "PAYLOAD_TOO_LARGE"),
        ("text/plain", "{}".to_owned(), 415, "UNSUPPORTED_MEDIA_TYPE"),
        (
            "application/json; charset=utf-8",
            "{}".to_owned(),
            400,
            "VALIDATION_ERROR",
        ),
        ("text/plain", String::new(), 400, "VALIDATION_ERROR"),
    ] {
        let refused = post_stack(&api, content_type, body)
            .await
            .expect_error(status, code);
        assert!(refused.json["error"]["details"].is_object());
    }
}

#[tokio::test]
async fn a_body_without_a_type_or_with_a_cors_safelisted_type_is_415() {
    let direct = Direct::new();
    for path in ["/api/v1/things", "/tick"] {
        for content_type in [
            None,
            Some(""),
            Some("text/plain"),
            Some("text/plain;application/json"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=x"),
        ] {
            let mut request = from(CLIENT, http::Method::POST, path);
            if let Some(content_type) = content_type {
                request = request.header("content-type", content_type);
            }
            let refused = direct.send(request, bytes_body("{}")).await;
            refused.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
        }
        let json =
            from(CLIENT, http::Method::POST, path).header("content-type", "application/json");
        let _ = direct.send(json, bytes_body("{}")).await.expect(204);
        let _ = direct.post(path).await.expect(204);
    }
}

#[tokio::test]
async fn the_body_limit_is_configurable_and_an_endpoint_can_override_it() {
    let world = World::with(|app| app.options.max_body_bytes = 100);
    let named = |length: usize| json!({ "name": "x".repeat(length) }).to_string();
    let refused = post_stack(&world.stacks, "application/json", named(100)).await;
    refused.expect_error(413, "PAYLOAD_TOO_LARGE");
    let refused = post_stack(&world.stacks, "application/json", named(50)).await;
    refused.expect_error(400, "VALIDATION_ERROR");
    let api = super::table::with_body_limit(10);
    let _ = api
        .post(&operator(), "/things", json!("12345678"))
        .await
        .expect(204);
    let refused = api.post(&operator(), "/things", json!("123456789")).await;
    refused.expect_error(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn every_response_has_a_request_id_and_a_valid_one_is_kept() {
    let api = World::new().stacks;
    for (headers, kept) in [
        (vec![("x-request-id", "abc.1:2_3-4")], Some("abc.1:2_3-4")),
        (
            vec![("x-core-request-id", "core"), ("x-request-id", "client")],
            Some("core"),
        ),
        (vec![("x-request-id", "not fit")], None),
        (vec![("x-request-id", "a"), ("x-request-id", "b")], None),
        (vec![], None),
    ] {
        let answer = api
            .send(&operator(), "GET", "/nothing/at/all", &headers, Value::Null)
            .await;
        let id = answer.header("x-request-id");
        assert_eq!(answer.json["error"]["requestId"], id);
        match kept {
            Some(kept) => assert_eq!(id, kept),
            None => assert_eq!(id.len(), 36),
        }
    }
}

#[tokio::test]
async fn a_405_lists_the_allowed_methods_and_head_is_get_without_a_body() {
    let api = World::new().stacks;
    let refused = api
        .send(&operator(), "PUT", "/api/v1/stacks/web", &[], json!({}))
        .await;
    let refused = refused.expect_error(405, "METHOD_NOT_ALLOWED");
    assert_eq!(refused.header("allow"), "GET, PATCH, HEAD");
    let get = api.get(&operator(), STACKS).await;
    let head = api
        .send(&operator(), "HEAD", STACKS, &[], Value::Null)
        .await
        .expect(200);
    assert!(head.bytes.is_empty());
    assert_eq!(head.header("content-length"), get.bytes.len().to_string());
}

#[tokio::test]
async fn an_accept_header_without_json_is_406() {
    let api = World::new().stacks;
    for (accept, status) in [
        ("text/html", StatusCode::NOT_ACCEPTABLE),
        ("application/json;q=0", StatusCode::NOT_ACCEPTABLE),
        ("text/html, */*;q=0.1", StatusCode::OK),
        ("application/json", StatusCode::OK),
    ] {
        let answer = api
            .send(&operator(), "GET", "/", &[("accept", accept)], Value::Null)
            .await;
        assert_eq!(answer.status, status, "{accept}");
    }
}

fn request_with_token(token: &str, users: &[&str]) -> Request<core_http::kernel::Body> {
    let mut request = Request::post("/")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {token}"));
    for user in users {
        request = request.header("x-core-user-id", user.as_bytes());
    }
    if users.len() == 1 {
        request = request
            .header("x-core-role", "owner")
            .header("x-core-platform-id", "p1");
    }
    request.body(bytes_body("{}")).unwrap()
}

#[tokio::test]
async fn the_service_key_authenticates_a_service_that_can_act_for_a_user() {
    let world = World::new();
    let (api, ada) = (&world.stacks, world.sign_up("ada@example.org").await);
    for (token, users, status, code) in [
        (SERVICE_KEY, &[][..], 400, "VALIDATION_ERROR"),
        (SERVICE_KEY, &[&*ada.user_id], 403, "FORBIDDEN"),
        // No user has this id.
        (SERVICE_KEY, &["ada"], 401, "UNAUTHORIZED"),
        ("wrong", &[], 401, "UNAUTHORIZED"),
        ("wrong", &["ada"], 401, "UNAUTHORIZED"),
        // An ambiguous or malformed user id makes the request anonymous.
        (SERVICE_KEY, &[""], 401, "UNAUTHORIZED"),
        (SERVICE_KEY, &["not an id"], 401, "UNAUTHORIZED"),
        (SERVICE_KEY, &["ada", "eve"], 401, "UNAUTHORIZED"),
        (SERVICE_KEY, &["é"], 401, "UNAUTHORIZED"),
    ] {
        api.raw(request_with_token(token, users))
            .await
            .expect_error(status, code);
    }
}

#[tokio::test]
async fn every_service_serves_its_health_and_its_openapi_document() {
    let world = World::new();
    for api in world.services() {
        for path in ["/health", "/livez", "/readyz"] {
            let answer = api.get(&Caller::Anonymous, path).await.expect(200);
            assert!(["ok", "healthy"].contains(&answer.text("status")), "{path}");
        }
        let described = api
            .get(&Caller::Anonymous, "/openapi.json")
            .await
            .expect(200);
        assert_eq!(described.header("content-type"), "application/json");
        assert_eq!(described.bytes, api.0.openapi().unwrap());
        let refused = api.post(&Caller::Anonymous, "/livez", Value::Null).await;
        refused.expect_error(404, "NOT_FOUND");
    }
}

/// Returns the response to a request from a test that is not async.
fn answer_to(send: impl AsyncFnOnce(&Api) -> Answer) -> Answer {
    thread_local! {
        static API: Api = World::new().stacks;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    API.with(|api| runtime.block_on(send(api)))
}

proptest! {
    #[test]
    fn arbitrary_bytes_in_a_body_are_a_client_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let answer = answer_to(async |api| post_stack(api, "application/json", body).await);
        prop_assert!(answer.status.is_client_error(), "{}", answer.status);
    }

    #[test]
    fn an_arbitrary_path_is_never_a_server_error(path in "/[!-~]{0,40}") {
        let caller = plain_member("p1");
        let answer = answer_to(async |api| api.get(&caller, &path).await);
        prop_assert!(!answer.status.is_server_error(), "{path} {}", answer.status);
    }
}
