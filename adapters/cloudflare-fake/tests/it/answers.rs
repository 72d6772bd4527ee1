//! Tests of authentication and of the response envelope.

use bytes::Bytes;
use serde_json::{Value, json};

use super::world::World;

const D1: &str = "/accounts/{a}/d1/database";

#[tokio::test]
async fn requests_without_the_accounts_token_are_refused() {
    let world = World::start().await;
    let with = |token: &'static str, path: &'static str| {
        let world = &world;
        async move {
            world
                .try_send("GET", path, token, "", Bytes::new())
                .await
                .unwrap()
                .failure()
        }
    };
    assert_eq!(with("wrong", D1).await, (401, 10000));
    assert_eq!(
        with("fake-api-token", "/pages/assets/check-missing").await,
        (401, 8_000_013)
    );
    let foreign = "/accounts/ffffffffffffffffffffffffffffffff/d1/database";
    assert_eq!(with("fake-api-token", foreign).await, (403, 9109));
    assert_eq!(
        with(
            "fake-api-token",
            "/zones/ffffffffffffffffffffffffffffffff/dns_records"
        )
        .await,
        (403, 9109)
    );
}

#[tokio::test]
async fn unknown_paths_and_invalid_ids_are_refused_with_7003() {
    let world = World::start().await;
    for path in [
        "/",
        "/nothing",
        "/accounts/{a}/nothing",
        "/accounts/7/d1/database",
        "/zones/7/dns_records",
        "/accounts/{a}/d1/database/1/2",
    ] {
        assert_eq!(world.get(path).await.failure(), (404, 7003), "{path}");
    }
    assert_eq!(world.patch(D1, Value::Null).await.failure(), (404, 7003));
}

#[tokio::test]
async fn json_is_parsed_with_any_content_type() {
    let world = World::start().await;
    for (name, kind) in [
        ("one", "text/plain"),
        ("two", "application/octet-stream"),
        ("three", ""),
    ] {
        let body = Bytes::from(json!({"name": name}).to_string());
        let token = world.fake.token();
        let reply = world
            .try_send("POST", D1, &token, kind, body)
            .await
            .unwrap();
        assert_eq!(reply.result()["name"], name);
    }
    let reply = world
        .try_send(
            "POST",
            D1,
            &world.fake.token(),
            "application/json",
            Bytes::from("{"),
        )
        .await
        .unwrap();
    assert_eq!(reply.failure(), (400, 7400));
}

#[tokio::test]
async fn journal_contains_no_request_data() {
    let world = World::start().await;
    world
        .post(&format!("{D1}?secret=hidden"), json!({"name": "hidden"}))
        .await
        .result();
    let requests = world.fake.requests();
    let path = D1.replace("{a}", &world.fake.account_id());
    assert_eq!(
        (
            requests[0].method.as_str(),
            requests[0].path.as_str(),
            requests[0].status
        ),
        ("POST", path.as_str(), Some(200))
    );
    let shown = format!("{requests:?}{:?}{:?}", world.fake, world.fake.exchanges());
    assert!(
        !shown.contains("hidden") && !shown.contains(&world.fake.token()),
        "{shown}"
    );
}
