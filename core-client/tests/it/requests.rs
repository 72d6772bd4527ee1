use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use core_client::types::feature::ActivateFeature;
use core_client::{Client, Credential, Error, PageQuery, Result, RetryPolicy, TokenSource};
use serde_json::json;

use crate::fake::{FakeReply, FakeServer};

/// Retries without noticeable pauses.
const QUICK: RetryPolicy = RetryPolicy {
    max_attempts: 3,
    first_pause: Duration::from_millis(1),
    max_pause: Duration::from_secs(2),
};

fn client(server: &FakeServer) -> Client {
    Client::builder(&server.url)
        .retry_policy(QUICK)
        .build()
        .unwrap()
}

fn platforms() -> FakeReply {
    let platform = json!({
        "id": "p-1", "slug": "engines", "name": "Engines", "status": "active", "tier": "starter",
        "suspensionReason": null, "createdAt": "2026-01-01T00:00:00.000Z",
    });
    let pagination = json!({ "hasMore": true, "nextCursor": "c-2", "total": 7 });
    FakeReply::json(
        200,
        &json!({ "data": [platform], "pagination": pagination }),
    )
}

fn activation_reply() -> FakeReply {
    FakeReply::json(
        202,
        &json!({ "status": "activated", "featureId": "search", "version": "1.0.0" }),
    )
}

fn feature() -> ActivateFeature {
    ActivateFeature {
        feature_id: "search".to_owned(),
        version: "1.0.0".to_owned(),
        config: None,
    }
}

#[tokio::test]
async fn a_list_has_its_records_and_the_cursor_of_the_next_page() {
    let server = FakeServer::with_replies([platforms()]);
    let page = PageQuery {
        limit: Some(1),
        cursor: Some("a b".to_owned()),
    };
    let list = client(&server).list_platforms(&page).await.unwrap();
    assert_eq!(
        (list.data[0].slug.as_str(), list.cursor.as_deref()),
        ("engines", Some("c-2"))
    );
    let request = &server.requests()[0];
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("GET", "/api/v1/platforms?limit=1&cursor=a%20b")
    );
}

#[tokio::test]
async fn a_read_is_repeated_after_a_temporary_failure() {
    let server =
        FakeServer::with_replies([FakeReply::error(503, "SERVICE_UNAVAILABLE"), platforms()]);
    client(&server)
        .list_platforms(&PageQuery::default())
        .await
        .unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_repeated_write_has_the_same_idempotency_key() {
    let server =
        FakeServer::with_replies([FakeReply::error(502, "UPSTREAM_ERROR"), activation_reply()]);
    client(&server)
        .activate_feature("p-1", &feature())
        .await
        .unwrap();
    let keys: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys.len(), 2);
    assert!(!keys[0].is_empty());
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn two_writes_have_different_idempotency_keys() {
    let server = FakeServer::with_replies([activation_reply()]);
    let client = client(&server);
    client.activate_feature("p-1", &feature()).await.unwrap();
    client.activate_feature("p-1", &feature()).await.unwrap();
    let received = server.requests();
    assert_ne!(
        received[0].header("idempotency-key"),
        received[1].header("idempotency-key")
    );
}

#[tokio::test]
async fn the_client_stops_after_the_last_attempt() {
    let server = FakeServer::with_replies([FakeReply::error(503, "SERVICE_UNAVAILABLE")]);
    let error = client(&server)
        .list_platforms(&PageQuery::default())
        .await
        .unwrap_err();
    assert_eq!((error.status(), server.requests().len()), (Some(503), 3));
}

#[tokio::test]
async fn a_pause_longer_than_allowed_is_returned_to_the_caller() {
    let limited = FakeReply::error(429, "RATE_LIMITED").header("retry-after", "3600");
    let server = FakeServer::with_replies([limited]);
    let error = client(&server)
        .list_platforms(&PageQuery::default())
        .await
        .unwrap_err();
    assert_eq!(
        error.api().unwrap().retry_after,
        Some(Duration::from_secs(3600))
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_error_has_the_code_message_and_request_id_of_the_server() {
    let server = FakeServer::with_replies([FakeReply::error(404, "NOT_FOUND")]);
    let error = client(&server).get_platform("p-1").await.unwrap_err();
    let error = error.api().unwrap();
    assert_eq!(
        (error.code.as_str(), error.request_id.as_deref()),
        ("NOT_FOUND", Some("r-1"))
    );
}

#[tokio::test]
async fn a_response_of_another_form_is_reported_with_its_operation() {
    let server = FakeServer::with_replies([FakeReply::json(200, &json!({ "data": 7 }))]);
    let error = client(&server)
        .list_platforms(&PageQuery::default())
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::Decode {
                operation: "list_platforms",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_is_down_is_a_transport_error() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let client = Client::builder(url).retry_policy(QUICK).build().unwrap();
    let error = client.get_platform("p-1").await.unwrap_err();
    assert!(
        matches!(&error, Error::Transport(transport) if transport.attempts == 3),
        "{error}"
    );
}

/// Has a second token after the first was refused.
#[derive(Debug, Default)]
struct TwoTokens(Mutex<Vec<String>>);

#[async_trait]
impl TokenSource for TwoTokens {
    async fn credential(&self) -> Result<Option<Credential>> {
        Ok(Some(Credential::from_text("cat_old")))
    }

    async fn replace(&self, refused: &Credential) -> Result<Option<Credential>> {
        self.0
            .lock()
            .unwrap()
            .push(format!("{}", *refused == Credential::from_text("cat_old")));
        Ok(Some(Credential::from_text("cat_new")))
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let server = FakeServer::start(|request| match request.header("authorization") {
        "Bearer cat_new" => platforms(),
        _ => FakeReply::error(401, "UNAUTHORIZED"),
    });
    let client = Client::builder(&server.url)
        .token_source(TwoTokens::default())
        .build()
        .unwrap();
    client.list_platforms(&PageQuery::default()).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_second_refusal_is_final() {
    let server = FakeServer::with_replies([FakeReply::error(401, "UNAUTHORIZED")]);
    let client = Client::builder(&server.url)
        .token_source(TwoTokens::default())
        .build()
        .unwrap();
    let error = client
        .list_platforms(&PageQuery::default())
        .await
        .unwrap_err();
    assert_eq!((error.status(), server.requests().len()), (Some(401), 2));
}

#[tokio::test]
async fn api_keys_and_bearer_tokens_have_their_own_headers() {
    for (token, name, value) in [
        ("core_1", "x-api-key", "core_1"),
        ("cat_1", "authorization", "Bearer cat_1"),
    ] {
        let server = FakeServer::with_replies([platforms()]);
        let client = Client::builder(&server.url).token(token).build().unwrap();
        client.list_platforms(&PageQuery::default()).await.unwrap();
        assert_eq!(server.requests()[0].header(name), value);
    }
}

#[tokio::test]
async fn oauth_requests_are_forms() {
    let tokens = json!({ "access_token": "cat_1", "token_type": "bearer", "expires_in": 900, "refresh_token": "crt_2" });
    let server = FakeServer::with_replies([FakeReply::json(200, &tokens)]);
    let client = Client::builder("http://localhost:1")
        .iam_url(&server.url)
        .build()
        .unwrap();
    let tokens = client
        .refresh_tokens(&"crt_1".to_owned().into())
        .await
        .unwrap();
    assert_eq!(tokens.refresh_token.expose(), "crt_2");
    let request = &server.requests()[0];
    assert_eq!(
        request.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    assert_eq!(
        request.body,
        "grant_type=refresh_token&refresh_token=crt_1&client_id=core-cli"
    );
}
