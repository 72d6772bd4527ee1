//! Idempotency keys, `If-Match`, and `If-None-Match`.

use core_http::kernel::testing::Answer;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use super::fixture::{Case, TestRequest, description, for_each_endpoint};
use super::samples::LowestRole;
use crate::world::{World, operator};

const KEY: &str = "idempotency-key";

/// The operation that suspends the caller's platform. Its repetition is refused like every other request.
const SUSPENDS: &str = "suspendPlatform";

/// Returns the parts of a response that a replay must repeat: the status, the body, and the entity tag.
fn replayed_parts(answer: &Answer) -> (u16, Value, String) {
    let etag = answer.header("etag").to_owned();
    (answer.status.as_u16(), answer.json.clone(), etag)
}

#[tokio::test]
async fn a_write_repeated_with_its_key_happens_once_and_gets_the_same_response() {
    let checked = for_each_endpoint(async |case: &Case| {
        if !case.row().takes_idempotency_keys() {
            return false;
        }
        let (least, name) = (case.lowest_caller(), case.name());
        let ask = case.valid_request().with(KEY, "once");
        let first = case.send(&least, &ask).await;
        assert!(first.status.is_success(), "{name}: {}", first.json);
        case.fixture.world.tick(60);
        let again = case.send(&least, &ask).await;
        if name == SUSPENDS {
            again.expect_error(451, "PLATFORM_SUSPENDED");
            return true;
        }
        assert_eq!(
            again.header("idempotency-replayed"),
            "true",
            "{name}: {}",
            again.json
        );
        assert_eq!(replayed_parts(&again), replayed_parts(&first), "{name}");
        let other = different(&ask);
        let refused = case.send(&least, &other).await;
        let code = match name {
            // The interface gives this row the status 409.
            "upgradePlan" => "CONFLICT",
            _ => "IDEMPOTENCY_KEY_REUSED",
        };
        assert_eq!(refused.code(), code, "{name}: {}", refused.json);
        // A key is bound to its caller, so the same key of another caller is a new request.
        if case.sample.least < LowestRole::Service && case.sample.least != LowestRole::Person {
            let theirs = case.send(&operator(), &ask).await;
            assert_eq!(theirs.header("idempotency-replayed"), "", "{name}");
        }
        true
    })
    .await;
    assert_eq!(checked, 126);
}

/// Returns a different request to the same endpoint.
fn different(ask: &TestRequest) -> TestRequest {
    if ask.body.is_object() {
        return ask.clone().with_field("unknown", Some(json!(1)));
    }
    ask.clone().with_query("unknown=1")
}

#[tokio::test]
async fn a_refusal_is_replayed_with_its_key_and_an_invalid_key_is_refused() {
    for_each_endpoint(async |case: &Case| {
        if !case.row().takes_idempotency_keys() {
            return false;
        }
        let (least, name) = (case.lowest_caller(), case.name());
        for bad in ["", "a b", "\"\"", &"x".repeat(256)] {
            let ask = case.valid_request().with(KEY, bad);
            let refused = case.send(&least, &ask).await;
            assert_eq!(refused.code(), "VALIDATION_ERROR", "{name} {bad:?}");
        }
        case.succeed().await;
        let ask = case.valid_request().with(KEY, "refused");
        let first = case.send(&least, &ask).await;
        let final_refusal = [404, 409].contains(&first.status.as_u16());
        if final_refusal && first.code() != "IDEMPOTENCY_IN_PROGRESS" {
            let again = case.send(&least, &ask).await;
            assert_eq!(again.header("idempotency-replayed"), "true", "{name}");
            assert_eq!(again.json, first.json, "{name}");
        }
        true
    })
    .await;
}

#[tokio::test]
async fn concurrent_requests_with_one_key_take_effect_once() {
    for_each_endpoint(async |case: &Case| {
        if !case.row().takes_idempotency_keys() {
            return false;
        }
        let (least, ask) = (
            case.lowest_caller(),
            case.valid_request().with(KEY, "at-once"),
        );
        let answers = join_all((0..4).map(|_| case.send(&least, &ask))).await;
        let first_hand = answers.iter().filter(|answer| {
            answer.is_success() && answer.header("idempotency-replayed").is_empty()
        });
        assert_eq!(first_hand.count(), 1, "{}", case.name());
        for answer in &answers {
            let late = case.name() == SUSPENDS && answer.code() == "PLATFORM_SUSPENDED";
            let fine = late || answer.is_success() || answer.code() == "IDEMPOTENCY_IN_PROGRESS";
            assert!(fine, "{}: {}", case.name(), answer.json);
        }
        true
    })
    .await;
}

#[tokio::test]
async fn if_match_changes_a_record_only_while_it_has_that_entity_tag() {
    let checked = for_each_endpoint(async |case: &Case| {
        if !case.row().honours_if_match() {
            return false;
        }
        let (least, name) = (case.lowest_caller(), case.name());
        let current = current_etag(case).await;
        let weak = format!("W/{current}");
        for stale in ["\"999\"", "\"a\", W/\"b\"", "nonsense", "\"*\"", "", &weak] {
            let ask = case.valid_request().with("if-match", stale);
            let refused = case.send(&least, &ask).await;
            let refusal = (refused.status.as_u16(), refused.code());
            assert_eq!(
                refusal,
                (412, "VERSION_CONFLICT"),
                "{name} {stale}: {}",
                refused.json
            );
        }
        let ask = case.valid_request().with("if-match", "\"999\"");
        let ask = ask.with("if-match", &format!("{weak}, {current}"));
        let changed = case.send(&least, &ask).await;
        assert!(changed.status.is_success(), "{name}: {}", changed.json);
        true
    })
    .await;
    assert_eq!(checked, 50);
}

/// Returns the entity tag of the record that the endpoint changes. It comes from the `GET` at the same path, or at the
/// parent path of an action. If there is no such `GET`, it comes from the response to the valid request.
async fn current_etag(case: &Case) -> String {
    let mut ask = case.valid_request();
    if ask.method == Method::POST {
        let above = parent(case.row().path());
        if !is_shown(&description(&case.service), above) {
            return case.succeed().await.header("etag").to_owned();
        }
        ask.path = parent(&ask.path).to_owned();
    }
    ask.method = Method::GET;
    ask.body = Value::Null;
    match case.name() {
        // The build of the fixture is the latest one.
        "updateBuild" => ask.path = ask.path.replace(case.id_of("buildId"), "latest"),
        // An operator has to name the platform.
        "cancelSubscription" | "changeTier" => {
            ask.query = format!("platformId={}", case.fixture.ids["platformId"]);
        }
        "overrideSubscription" => ask.path = format!("/subscriptions/{}", case.id_of("id")),
        _ => {}
    }
    let caller = match case.sample.least {
        LowestRole::Person => case.lowest_caller(),
        _ => operator(),
    };
    let shown = case.send(&caller, &ask).await;
    assert!(shown.status.is_success(), "{}", shown.json);
    shown.header("etag").to_owned()
}

#[tokio::test]
async fn a_matching_if_none_match_gets_304_without_a_body() {
    let checked = for_each_endpoint(async |case: &Case| {
        if case.row().method() != Method::GET {
            return false;
        }
        let shown = case.succeed().await;
        let etag = shown.header("etag");
        let described = !case.operation()["responses"]["304"].is_null();
        assert_eq!(!etag.is_empty(), described, "{}", case.name());
        if etag.is_empty() {
            return false;
        }
        let ask = case.valid_request().with("if-none-match", etag);
        let same = case.send(&case.lowest_caller(), &ask).await;
        assert_eq!((same.status.as_u16(), same.bytes.len()), (304, 0));
        assert_eq!(same.header("etag"), etag);
        let ask = case.valid_request().with("if-none-match", "\"other\"");
        assert_eq!(case.send(&case.lowest_caller(), &ask).await.status, 200);
        true
    })
    .await;
    assert_eq!(checked, 34);
}

#[test]
fn every_endpoint_that_changes_a_record_with_an_entity_tag_obeys_if_match() {
    for api in World::new().services() {
        let document = description(api);
        for row in api.0.endpoints() {
            let operations = &document["paths"][row.path()];
            let described = &operations[row.method().as_str().to_ascii_lowercase()]["responses"];
            let answers_it = described["200"]["headers"]["ETag"].is_object();
            let changes = match *row.method() {
                Method::GET => false,
                // A `POST` to a list adds a record. Any other one changes the record at the parent path, or the one
                // that it returns.
                Method::POST => {
                    let to_list = operations["get"].is_object();
                    !to_list && (answers_it || is_shown(&document, parent(row.path())))
                }
                _ => answers_it || is_shown(&document, row.path()),
            };
            let obeys = described["412"].is_object();
            assert_eq!(obeys, changes, "{}", row.operation());
        }
    }
}

/// Returns whether the `GET` of a path returns a record with an entity tag.
fn is_shown(document: &Value, path: &str) -> bool {
    document["paths"][path]["get"]["responses"]["304"].is_object()
}

/// Returns a path without its last segment.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(above, _)| above)
}
