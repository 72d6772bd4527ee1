//! IAM is found by the metadata of the gateway and of IAM itself.

use std::sync::{Arc, OnceLock};

use core_client::{Client, Error, RetryPolicy};
use serde_json::{Value, json};

use crate::fake::{FakeReply, FakeServer};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";

fn metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer, "token_endpoint": format!("{issuer}/oauth/token"),
        "device_authorization_endpoint": format!("{issuer}/oauth/device/code"),
    })
}

/// Starts a server that is the gateway and IAM, with the documents that a function returns for its address.
fn server(documents: fn(&str) -> (FakeReply, FakeReply)) -> FakeServer {
    let url = Arc::new(OnceLock::<String>::new());
    let own = Arc::clone(&url);
    let server = FakeServer::start(move |request| {
        let (resource, server) = documents(own.get().unwrap());
        match request.target.as_str() {
            RESOURCE => resource,
            SERVER => server,
            _ => FakeReply::error(404, "NOT_FOUND"),
        }
    });
    url.set(server.url.clone()).unwrap();
    server
}

fn resource(url: &str, issuer: &str) -> FakeReply {
    FakeReply::json(
        200,
        &json!({ "resource": url, "authorization_servers": [issuer] }),
    )
}

fn good(url: &str) -> (FakeReply, FakeReply) {
    (resource(url, url), FakeReply::json(200, &metadata(url)))
}

async fn discover(server: &FakeServer) -> core_client::Result<Client> {
    let once = RetryPolicy {
        max_attempts: 1,
        ..RetryPolicy::default()
    };
    let builder = Client::builder(&server.url).retry_policy(once);
    builder.token("core_key").discover_iam().await?.build()
}

async fn reason(documents: fn(&str) -> (FakeReply, FakeReply)) -> String {
    match discover(&server(documents)).await {
        Err(Error::Discovery(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn iam_is_found_without_showing_the_credential() {
    let server = server(good);
    let client = discover(&server).await.unwrap();
    assert_eq!(client.iam_url(), server.url);
    let requests = server.requests();
    let targets: Vec<_> = requests.iter().map(|request| &*request.target).collect();
    assert_eq!(targets, [RESOURCE, SERVER]);
    for request in &requests {
        let credentials = (request.header("x-api-key"), request.header("authorization"));
        assert_eq!(credentials, ("", ""));
    }
}

#[tokio::test]
async fn a_gateway_without_usable_metadata_is_explained() {
    let missing = reason(|url| (FakeReply::error(404, "NOT_FOUND"), good(url).1)).await;
    assert!(missing.contains("status 404"), "{missing}");
    let page = reason(|url| (FakeReply::json(200, &json!("a page")), good(url).1)).await;
    assert!(page.contains("not the expected JSON"), "{page}");
    let none = reason(|url| {
        let document = json!({ "resource": url, "authorization_servers": [] });
        (FakeReply::json(200, &document), good(url).1)
    });
    assert!(none.await.contains("names no identity service"));
    let invalid = reason(|url| (resource(url, "iam"), good(url).1)).await;
    assert!(invalid.contains("names no identity service"), "{invalid}");
}

#[tokio::test]
async fn documents_of_another_address_are_refused() {
    let other = reason(|url| (resource("https://api.example.org", url), good(url).1)).await;
    assert!(other.contains("https://api.example.org"), "{other}");
    let other = reason(|url| {
        let document = metadata("https://iam.example.org");
        (good(url).0, FakeReply::json(200, &document))
    });
    assert!(other.await.contains("https://iam.example.org"));
    let endpoints = reason(|url| {
        let mut document = metadata(url);
        document["token_endpoint"] = json!("https://evil.example.org/oauth/token");
        (good(url).0, FakeReply::json(200, &document))
    });
    assert!(endpoints.await.contains("other endpoints"));
}

#[tokio::test]
async fn an_unencrypted_identity_service_on_another_machine_is_refused() {
    let plain = reason(|url| (resource(url, "http://iam.example.org"), good(url).1)).await;
    assert!(plain.contains("https"), "{plain}");
}

#[tokio::test]
async fn an_unencrypted_gateway_on_another_machine_is_not_asked() {
    let discovered = Client::builder("http://api.example.org").discover_iam();
    let error = discovered.await.unwrap_err();
    assert!(matches!(error, Error::Discovery(_)), "{error:?}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = FakeServer::with_replies([FakeReply::error(404, "NOT_FOUND")]);
    let location = format!("{}{RESOURCE}", target.url);
    let redirect = FakeReply::json(302, &json!({})).header("location", &location);
    let gateway = FakeServer::with_replies([redirect]);
    match discover(&gateway).await {
        Err(Error::Discovery(reason)) => assert!(reason.contains("redirects"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(target.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_fails_is_reported_as_such() {
    let server = FakeServer::with_replies([FakeReply::error(503, "UNAVAILABLE")]);
    let error = discover(&server).await.unwrap_err();
    assert_eq!(error.status(), Some(503));
}
