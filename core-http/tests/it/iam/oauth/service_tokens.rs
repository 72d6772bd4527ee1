//! Service tokens: their issue, their verification by services, and the rotation of signing keys.

use std::sync::Arc;

use core_domain::access::RecordKey;
use core_domain::iam::SigningKeyQuery;
use core_domain::kernel::Cipher;
use core_domain::port::{Mode, Within};
use core_http::iam::service;
use core_http::kernel::empty_body;
use futures_util::future::join_all;
use http::Request;
use serde_json::{Value, json};

use crate::iam::{ADA, DAY, EVE, SIGN_OUT};
use crate::world::{Answer, Api, World, iam_config, on_every_store, plain_member};

const ISSUE: &str = "/api/core/service-token";
const JWKS: &str = "/.well-known/jwks.json";

on_every_store! { nodes_that_create_a_signing_key_at_once_create_one }

impl World {
    async fn service_token(&self, service: &str, target: &str) -> Answer {
        let body = json!({ "serviceId": service, "targetService": target });
        self.post_with_service_key(ISSUE, &body).await
    }

    async fn key_names(&self) -> Vec<String> {
        let told = self
            .send_unidentified("GET", JWKS, &[], Value::Null)
            .await
            .expect(200);
        assert_eq!(told.header("cache-control"), "public, max-age=300");
        let keys = told.json["keys"].as_array().unwrap().clone();
        let name = |key: &Value| key["kid"].as_str().unwrap().to_owned();
        keys.iter().map(name).collect()
    }
}

/// Returns the header and the claims of a token.
fn parts(token: &str) -> (Value, Value) {
    let mut parts = token.split('.').map(|part| {
        let bytes = base64url(part);
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    });
    (parts.next().unwrap(), parts.next().unwrap())
}

fn base64url(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .unwrap()
}

/// Sends a `GET` over the network with this credential and further headers.
async fn get_with_bearer(api: &Api, path: &str, token: &str, more: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(path).header("authorization", format!("Bearer {token}"));
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    api.raw(request.body(empty_body()).unwrap()).await
}

#[tokio::test]
async fn service_tokens_name_both_services_last_five_minutes_and_use_a_published_key() {
    let world = World::new();
    let issued = world.service_token("gateway", "registry").await.expect(200);
    assert_eq!(issued.header("cache-control"), "no-store");
    assert_eq!(
        (issued.text("tokenType"), &issued.json["expiresIn"]),
        ("Bearer", &json!(300))
    );
    assert_eq!(issued.text("expiresAt"), "2027-01-15T08:05:00.000Z");
    let (header, claims) = parts(issued.text("token"));
    let kid = &world.key_names().await[0];
    assert_eq!(
        header,
        json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": kid })
    );
    let now = 1_800_000_000;
    let expected = json!({
        "iss": "http://iam.test", "sub": "gateway", "aud": "registry", "iat": now, "nbf": now,
        "exp": now + 300, "jti": claims["jti"],
    });
    assert_eq!(claims, expected);
    let other = world.service_token("gateway", "registry").await.expect(200);
    assert_ne!(parts(other.text("token")).1["jti"], claims["jti"]);
    let entries = world.audit("service_token.issued").await;
    assert_eq!(entries.len(), 2);
    assert!(!format!("{entries:?}").contains(issued.text("token")));
}

#[tokio::test]
async fn service_tokens_require_the_service_key_and_an_allowed_pair_of_services() {
    let world = World::new();
    for (service, target) in [
        ("registry", "registry"),
        ("iam", "gateway"),
        ("x", "iam"),
        ("iam", "x"),
    ] {
        let refused = world.service_token(service, target).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    let body = json!({ "serviceId": "gateway", "targetService": "iam" });
    let refused = world
        .iam
        .post(&plain_member("engines"), ISSUE, body.clone())
        .await;
    refused.expect_error(403, "FORBIDDEN");
    world
        .post(ISSUE, body)
        .await
        .expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn services_accept_only_tokens_for_themselves_and_act_for_the_named_user() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let path = "/api/v1/platforms";
    let token = world.service_token("gateway", "registry").await.expect(200);
    let token = token.text("token");
    let all = get_with_bearer(&world.registry, path, token, &[])
        .await
        .expect(200);
    assert_eq!(all.each("id"), [platform.as_str()]);
    let ursula = world.sign_up("ursula@example.org").await;
    let user = [
        ("x-core-user-id", &*ursula.user_id),
        ("x-core-role", "owner"),
        ("x-core-operator", "true"),
        ("x-core-platform-id", &platform),
    ];
    let none = get_with_bearer(&world.registry, path, token, &user)
        .await
        .expect(200);
    assert!(none.each("id").is_empty());
    // The token is in the header of a gateway that forwards the client's own credential.
    let hop = [
        ("x-core-service-key", token),
        ("x-core-client-ip", "203.0.113.9"),
    ];
    let ada = world.sign_up(ADA).await;
    let refused = get_with_bearer(&world.registry, path, &ada.token, &hop).await;
    refused.expect_error(401, "UNAUTHORIZED");

    let for_iam = world.service_token("gateway", "iam").await.expect(200);
    let for_iam = for_iam.text("token");
    let mut forged = token.to_owned();
    forged.replace_range(token.len() - 4.., "AAAA");
    for wrong in [for_iam, &forged, "a.b.c"] {
        let refused = get_with_bearer(&world.registry, path, wrong, &[]).await;
        refused.expect_error(401, "UNAUTHORIZED");
    }
    let of_ada = [("x-core-user-id", ada.user_id.as_str())];
    let own = get_with_bearer(&world.iam, "/api/sessions", for_iam, &of_ada)
        .await
        .expect(200);
    assert_eq!(own.each("id"), [ada.session_id.as_str()]);
    world.tick(329);
    let _ = get_with_bearer(&world.registry, path, token, &[])
        .await
        .expect(200);
    world.tick(1);
    get_with_bearer(&world.registry, path, token, &[])
        .await
        .expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_session_bound_token_is_valid_only_for_its_user_and_while_the_session_lasts() {
    let world = World::new();
    let [ada, eve] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let body = json!({
        "serviceId": "gateway", "targetService": "registry", "sessionId": ada.session_id,
    });
    let issued = world.post_with_service_key(ISSUE, &body).await.expect(200);
    let token = issued.text("token");
    assert_eq!(parts(token).1["sid"], ada.session_id.as_str());
    let platforms = async |headers: &[(&str, &str)]| {
        get_with_bearer(&world.registry, "/api/v1/platforms", token, headers).await
    };
    let of_ada = [("x-core-user-id", &*ada.user_id)];
    let of_eve = [("x-core-user-id", &*eve.user_id)];
    let _ = platforms(&of_ada).await.expect(200);
    // The token never represents the service itself or a program.
    let of_key = [of_ada[0], ("x-core-api-key-id", "k-1")];
    for headers in [&of_eve[..], &[], &of_key] {
        platforms(headers).await.expect_error(401, "UNAUTHORIZED");
    }
    let _ = world
        .send_with_bearer(&ada.token, "POST", SIGN_OUT)
        .await
        .expect(200);
    platforms(&of_ada).await.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn signing_keys_are_published_a_day_before_and_a_day_after_their_use() {
    let world = World::new();
    let signed_by = async || {
        let issued = world.service_token("gateway", "registry").await.expect(200);
        let kid = parts(issued.text("token")).0["kid"]
            .as_str()
            .unwrap()
            .to_owned();
        (issued.text("token").to_owned(), kid)
    };
    let first = world.key_names().await;
    assert_eq!(first.len(), 1);
    world.tick(29 * DAY - 1);
    assert_eq!(world.key_names().await, first);
    world.tick(1);
    let both = world.key_names().await;
    assert_eq!((both.len(), &both[..1]), (2, &first[..]));
    world.tick(DAY - 1);
    let (token, kid) = signed_by().await;
    assert_eq!(kid, both[0]);
    world.tick(1);
    assert_eq!(signed_by().await.1, both[1]);
    let _ = get_with_bearer(&world.registry, "/api/v1/platforms", &token, &[])
        .await
        .expect(200);
    world.tick(DAY);
    assert_eq!(world.key_names().await, both[1..]);
    assert_eq!(world.audit("signing_key.created").await.len(), 2);
}

#[tokio::test]
async fn a_new_encryption_key_creates_a_signing_key_and_keeps_old_tokens_valid() {
    let world = World::new();
    let old = world.service_token("gateway", "registry").await.expect(200);
    let mut app = world.app.as_ref().clone();
    app.cipher = Cipher::new([3; 32], app.entropy.clone());
    let world = World {
        iam: Api(service(Arc::new(app), &iam_config()).unwrap()),
        ..world
    };
    for _ in 0..3 {
        let new = world.service_token("gateway", "registry").await.expect(200);
        for token in [&old, &new] {
            let shown = get_with_bearer(
                &world.registry,
                "/api/v1/platforms",
                token.text("token"),
                &[],
            );
            let _ = shown.await.expect(200);
        }
    }
    assert_eq!(world.key_names().await.len(), 2);
}

async fn nodes_that_create_a_signing_key_at_once_create_one(world: World) {
    let asked = (0..12).map(|_| world.key_names());
    let mut names = join_all(asked).await;
    names.dedup();
    assert_eq!((names.len(), names[0].len()), (1, 1));
    world.tick(29 * DAY);
    let asked = (0..12).map(|_| world.service_token("gateway", "iam"));
    for issued in join_all(asked).await {
        let _ = issued.expect(200);
    }
    assert_eq!(world.key_names().await.len(), 2);
    let mut uow = world.app.store.begin(Mode::Read).await.unwrap();
    let keys = uow.repositories(RecordKey::for_tests()).signing_keys();
    let keys = keys
        .list(Within::Installation, &SigningKeyQuery::All, 10)
        .await
        .unwrap();
    let generations: Vec<i64> = keys.iter().map(|key| key.generation).collect();
    assert_eq!(generations, [1, 2]);
    let sealed = &keys[0].sealed_private_key;
    assert!(core_domain::iam::Ed25519Private::from_base64url(sealed).is_none());
}
