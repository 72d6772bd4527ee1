//! What holds for every endpoint, shown on the stack registry's.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Caller, ManualClock, Result, Timestamp};
use core_domain::port::UnitOfWork;
use core_http::kernel::testing::{
    Answer, SERVICE_KEY, app, call, call_with, member, operator, send,
};
use core_http::kernel::{Access, Cx, Input, Output, Service, ServiceError, bytes_body, get};
use core_storage::memory::{MemoryConfig, open};
use http::{Method, Request, StatusCode};
use proptest::prelude::*;
use serde_json::{Value, json};

fn suite() -> (Service, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
    let app = app(
        open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        }),
        clock.clone(),
    );
    (core_http::stacks::service(app).unwrap(), clock)
}

fn template(name: &str) -> Value {
    json!({"name": name, "displayName": "Web", "description": "A web stack"})
}

async fn raw(service: &Service, content_type: &str, body: impl Into<bytes::Bytes>) -> Answer {
    let request = Request::post("/api/v1/stacks")
        .header("content-type", content_type)
        .extension(operator())
        .body(bytes_body(body))
        .unwrap();
    send(service, request).await
}

async fn with_key(service: &Service, caller: &Caller, key: &str, body: Value) -> Answer {
    let headers = [("idempotency-key", key)];
    call_with(service, "POST", "/api/v1/stacks", caller, &headers, body).await
}

#[tokio::test]
async fn a_write_sent_twice_with_a_key_happens_once_and_answers_the_same() {
    let (service, clock) = suite();
    let first = with_key(&service, &operator(), "k1", template("web")).await;
    assert_eq!(first.status, StatusCode::CREATED);
    assert_eq!(first.header("idempotency-replayed"), "");
    let reordered = json!({"description": "A web stack", "displayName": "Web", "name": "web"});
    for key in ["k1", "\"k1\""] {
        let again = with_key(&service, &operator(), key, reordered.clone()).await;
        assert_eq!((again.status, &again.json), (first.status, &first.json));
        assert_eq!(again.header("idempotency-replayed"), "true");
    }
    let other = with_key(&service, &operator(), "k1", template("api")).await;
    assert_eq!(
        (other.status, other.code()),
        (StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED")
    );
    clock.advance(Duration::from_secs(24 * 3_600));
    let expired = with_key(&service, &operator(), "k1", template("api")).await;
    assert_eq!(
        expired.status,
        StatusCode::CREATED,
        "after a day the key is new"
    );
}

#[tokio::test]
async fn a_refusal_is_replayed_for_its_key_and_a_validation_failure_is_not() {
    let (service, _) = suite();
    call(
        &service,
        "POST",
        "/api/v1/stacks",
        &operator(),
        template("web"),
    )
    .await;
    let first = with_key(&service, &operator(), "k1", template("web")).await;
    let again = with_key(&service, &operator(), "k1", template("web")).await;
    assert_eq!((first.code(), again.code()), ("CONFLICT", "CONFLICT"));
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(first.json, again.json);
    let invalid = with_key(&service, &operator(), "k2", json!({})).await;
    assert_eq!(invalid.status, StatusCode::BAD_REQUEST);
    let corrected = with_key(&service, &operator(), "k2", template("api")).await;
    assert_eq!(corrected.status, StatusCode::CREATED);
}

#[tokio::test]
async fn keys_of_different_callers_have_nothing_to_do_with_each_other() {
    let (service, _) = suite();
    with_key(&service, &operator(), "k1", template("web")).await;
    let other = Caller::Service {
        name: "provisioning".to_owned(),
    };
    let answer = with_key(&service, &other, "k1", template("api")).await;
    assert_eq!(answer.status, StatusCode::CREATED);
}

#[tokio::test]
async fn of_many_writes_with_one_key_at_once_one_happens() {
    let (service, _) = suite();
    let attempts = (0..16).map(|_| {
        let service = service.clone();
        tokio::spawn(async move { with_key(&service, &operator(), "k1", template("web")).await })
    });
    let mut ids = Vec::new();
    for attempt in futures_util::future::join_all(attempts).await {
        let answer = attempt.unwrap();
        match answer.status {
            StatusCode::CREATED => ids.push(answer.json["id"].to_string()),
            status => {
                assert_eq!(
                    (status, answer.code()),
                    (StatusCode::CONFLICT, "IDEMPOTENCY_IN_PROGRESS")
                );
                assert_eq!(answer.header("retry-after"), "1");
            }
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let listed = call(&service, "GET", "/", &operator(), Value::Null).await;
    assert_eq!(listed.json["total"], 1);
}

#[tokio::test]
async fn a_key_is_1_to_255_visible_characters() {
    let (service, _) = suite();
    for bad in ["", "\"\"", "a b", &"k".repeat(256)] {
        let refused = with_key(&service, &operator(), bad, template("web")).await;
        assert_eq!(refused.code(), "VALIDATION_ERROR", "{bad:?}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_are_refused_with_the_envelope() {
    let (service, _) = suite();
    let json = "application/json";
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(1024 * 1024));
    for (content_type, body, status, code) in [
        (
            json,
            "{".to_owned(),
            StatusCode::BAD_REQUEST,
            "MALFORMED_JSON",
        ),
        (
            json,
            r#"{"name":"a","name":"b"}"#.to_owned(),
            StatusCode::BAD_REQUEST,
            "MALFORMED_JSON",
        ),
        (
            json,
            "{} {}".to_owned(),
            StatusCode::BAD_REQUEST,
            "MALFORMED_JSON",
        ),
        (
            json,
            "[".repeat(100_000),
            StatusCode::BAD_REQUEST,
            "MALFORMED_JSON",
        ),
        (
            json,
            large,
            StatusCode::PAYLOAD_TOO_LARGE,
            "PAYLOAD_TOO_LARGE",
        ),
        (
            "text/plain",
            "{}".to_owned(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
        ),
        (
            "application/json; charset=utf-8",
            "{}".to_owned(),
            StatusCode::BAD_REQUEST,
            "VALIDATION_ERROR",
        ),
        (
            "text/plain",
            String::new(),
            StatusCode::BAD_REQUEST,
            "VALIDATION_ERROR",
        ),
    ] {
        let refused = raw(&service, content_type, body).await;
        assert_eq!(
            (refused.status, refused.code()),
            (status, code),
            "{content_type}"
        );
        assert!(refused.json["error"]["details"].is_object());
    }
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_a_fit_one_is_kept() {
    let (service, _) = suite();
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
        let answer = call_with(
            &service,
            "GET",
            "/nothing/at/all",
            &operator(),
            &headers,
            Value::Null,
        )
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
async fn a_wrong_method_names_the_right_ones_and_head_is_get_without_its_body() {
    let (service, _) = suite();
    let refused = call(
        &service,
        "PUT",
        "/api/v1/stacks/web",
        &operator(),
        json!({}),
    )
    .await;
    assert_eq!(
        (refused.status, refused.code()),
        (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED")
    );
    assert_eq!(refused.header("allow"), "GET, PATCH, HEAD");
    let get = call(&service, "GET", "/api/v1/stacks", &operator(), Value::Null).await;
    let head = call(&service, "HEAD", "/api/v1/stacks", &operator(), Value::Null).await;
    assert_eq!(head.status, StatusCode::OK);
    assert!(head.bytes.is_empty());
    assert_eq!(head.header("content-length"), get.bytes.len().to_string());
}

#[tokio::test]
async fn who_wants_something_else_than_json_is_told() {
    let (service, _) = suite();
    for (accept, status) in [
        ("text/html", StatusCode::NOT_ACCEPTABLE),
        ("application/json;q=0", StatusCode::NOT_ACCEPTABLE),
        ("text/html, */*;q=0.1", StatusCode::OK),
        ("application/json", StatusCode::OK),
    ] {
        let headers = [("accept", accept)];
        let answer = call_with(&service, "GET", "/", &operator(), &headers, Value::Null).await;
        assert_eq!(answer.status, status, "{accept}");
    }
}

#[tokio::test]
async fn the_service_key_is_a_trusted_caller_and_may_speak_for_a_user() {
    let (service, _) = suite();
    let ask = |token: &str, user: bool| {
        let mut request = Request::post("/").header("authorization", format!("Bearer {token}"));
        if user {
            request = request
                .header("x-core-user-id", "ada")
                .header("x-core-role", "owner")
                .header("x-core-platform-id", "p1");
        }
        request.body(bytes_body("{}")).unwrap()
    };
    assert_eq!(
        send(&service, ask(SERVICE_KEY, false)).await.code(),
        "VALIDATION_ERROR"
    );
    assert_eq!(
        send(&service, ask(SERVICE_KEY, true)).await.code(),
        "FORBIDDEN"
    );
    assert_eq!(
        send(&service, ask("wrong", false)).await.code(),
        "UNAUTHORIZED"
    );
    assert_eq!(
        send(&service, ask("wrong", true)).await.code(),
        "UNAUTHORIZED"
    );
}

#[tokio::test]
async fn a_holder_of_the_service_key_who_does_not_say_clearly_for_whom_speaks_for_nobody() {
    let (service, _) = suite();
    for users in [&[""][..], &["not an id"], &["ada", "eve"], &["é"]] {
        let mut request =
            Request::post("/").header("authorization", format!("Bearer {SERVICE_KEY}"));
        for user in users {
            request = request.header("x-core-user-id", user.as_bytes());
        }
        let answer = send(&service, request.body(bytes_body("{}")).unwrap()).await;
        assert_eq!(answer.code(), "UNAUTHORIZED", "{users:?}");
    }
}

#[tokio::test]
async fn every_service_tells_its_health_and_its_description() {
    let (service, _) = suite();
    for path in ["/health", "/livez", "/readyz"] {
        let answer = call(&service, "GET", path, &Caller::Anonymous, Value::Null).await;
        assert_eq!(
            (answer.status, &answer.json["status"]),
            (StatusCode::OK, &json!("ok")),
            "{path}"
        );
    }
    let spec = call(
        &service,
        "GET",
        "/openapi.json",
        &Caller::Anonymous,
        Value::Null,
    )
    .await
    .json;
    assert_eq!(spec["openapi"], "3.1.0");
    for endpoint in service.endpoints() {
        let method = endpoint.method().as_str().to_ascii_lowercase();
        let operation = &spec["paths"][endpoint.path()][&method];
        assert_eq!(operation["operationId"], endpoint.operation());
        for status in endpoint.success() {
            assert!(operation["responses"][status.as_str()].is_object());
        }
    }
    let text = spec.to_string();
    for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(spec["components"]["schemas"][name].is_object(), "{name}");
    }
}

async fn panics(_: &Cx, _: &mut dyn UnitOfWork, _: Input) -> Result<Output<()>> {
    panic!("as told")
}

async fn nothing(_: &Cx, _: &mut dyn UnitOfWork, _: Input) -> Result<Output<()>> {
    Ok(Output::new(()))
}

fn of_rows(rows: Vec<core_http::kernel::Endpoint>) -> std::result::Result<Service, ServiceError> {
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let app = app(
        open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        }),
        clock,
    );
    Service::builder("test", app, rows)
        .mount("/api/v1", "")
        .build()
}

#[tokio::test]
async fn a_handler_that_panics_is_a_500_with_the_envelope() {
    let service = of_rows(vec![
        get("/api/v1/p", "p").access(Access::Public).reads(panics),
    ])
    .unwrap();
    let answer = call(&service, "GET", "/p", &Caller::Anonymous, Value::Null).await;
    assert_eq!(
        (answer.status, answer.code()),
        (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR")
    );
    assert!(!answer.json.to_string().contains("as told"));
}

#[test]
fn a_table_that_contradicts_itself_is_no_service() {
    let row = |path: &'static str, id: &'static str| get(path, id).reads(nothing);
    for rows in [
        vec![row("/api/v1/a", "a"), row("/api/v1/a", "b")],
        vec![row("/api/v1/a", "a"), row("/api/v1/b", "a")],
        vec![row("/api/v1/{a}", "a")],
    ] {
        assert!(of_rows(rows).is_err());
    }
    assert!(of_rows(vec![row("/api/v1/a", "a"), row("/api/v1/b", "b")]).is_ok());
}

#[test]
fn a_prefix_taken_off_tells_two_routes_of_the_same_rest_apart() {
    let service = of_rows(vec![
        get("/api/v1/onboarding/{id}", "onboarding").reads(shown),
        get("/api/v1/{id}", "platform").reads(shown),
    ])
    .unwrap();
    let found = |path: &str, prefix| {
        service
            .find(&Method::GET, path, prefix)
            .map(|e| e.operation())
    };
    assert_eq!(found("/x", Some("/api/v1/onboarding")), Some("onboarding"));
    assert_eq!(found("/x", None), Some("platform"));
    assert_eq!(found("/onboarding/x", None), Some("onboarding"));
}

async fn shown(_: &Cx, _: &mut dyn UnitOfWork, _: Input<(String,)>) -> Result<Output<()>> {
    Ok(Output::new(()))
}

proptest! {
    #[test]
    fn no_bytes_in_a_body_are_our_fault(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (service, _) = suite();
        let answer = runtime.block_on(raw(&service, "application/json", body));
        prop_assert!(answer.status.is_client_error(), "{}", answer.status);
    }

    #[test]
    fn no_path_is_our_fault(path in "/[!-~]{0,40}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (service, _) = suite();
        let caller = member("ada", "p1", core_domain::kernel::Role::Member).unwrap();
        let answer = runtime.block_on(call(&service, "GET", &path, &caller, Value::Null));
        prop_assert!(!answer.status.is_server_error(), "{path} {}", answer.status);
    }
}
