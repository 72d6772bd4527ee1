//! Keys that call IAM itself.

use serde_json::{Value, json};

use super::{CREATE, DELETE, GET, LIST, OrganizationOwner, ROLES, ROTATE, UPDATE, VALIDATE};
use crate::iam::{CORE_SESSION, GET_SESSION, ORG_SETUP, SESSIONS, SIGN_OUT};
use crate::world::World;

#[tokio::test]
async fn a_key_is_not_a_session_and_cannot_manage_keys_or_sessions() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, secret) = ada.key(&world, json!({})).await;
    let session = world
        .send_with_key(&secret, "GET", GET_SESSION, Value::Null)
        .await;
    assert_eq!(session.expect(200).json, Value::Null);
    let one_session = format!("{SESSIONS}/{}", ada.person.session_id);
    let one_key = format!("{GET}?id={id}");
    let of_key = json!({ "keyId": id });
    for (method, path, body) in [
        ("GET", CORE_SESSION, Value::Null),
        ("GET", SESSIONS, Value::Null),
        ("DELETE", &one_session, Value::Null),
        ("POST", ORG_SETUP, json!({ "name": "A", "slug": "abc" })),
        ("POST", CREATE, json!({})),
        ("GET", LIST, Value::Null),
        ("GET", &one_key, Value::Null),
        ("POST", UPDATE, json!({ "keyId": id, "name": "mine" })),
        ("POST", ROTATE, of_key.clone()),
        ("POST", DELETE, of_key),
    ] {
        let refused = world.send_with_key(&secret, method, path, body).await;
        assert_eq!(refused.status, 401, "{method} {path}: {}", refused.json);
    }
    let signed_out = world
        .send_with_key(&secret, "POST", SIGN_OUT, Value::Null)
        .await;
    let _ = signed_out.expect(200);
    let validate = json!({ "key": secret });
    let refused = world
        .send_with_key(&secret, "POST", VALIDATE, validate)
        .await;
    refused.expect_error(403, "FORBIDDEN");
    // Ada's session is still valid.
    let _ = ada.get(&world, CORE_SESSION).await.expect(200);
    assert_eq!(world.key_verdict(&secret).await, "VALID");
}

#[tokio::test]
async fn routes_for_keys_enforce_their_scopes_and_audit_the_key_id() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, secret) = ada
        .key(&world, json!({ "scopes": ["role:*", "job:read"] }))
        .await;
    let (_, reader) = ada.key(&world, json!({ "scopes": ["role:read"] })).await;
    let path = format!("{ROLES}?orgId={}", ada.org);
    let listed = world
        .send_with_key(&reader, "GET", &path, Value::Null)
        .await;
    let _ = listed.expect(200);
    let map = |permission: &str| json!({ "orgId": ada.org, "role": "auditor", "permissions": [permission] });
    let refused = world
        .send_with_key(&reader, "POST", ROLES, map("role:read"))
        .await;
    refused.expect_error(403, "FORBIDDEN");
    // A key cannot give a permission that it lacks, even if its owner has it.
    let refused = world
        .send_with_key(&secret, "POST", ROLES, map("entity:write"))
        .await;
    refused.expect_error(403, "FORBIDDEN");
    let mapped = world
        .send_with_key(&secret, "POST", ROLES, map("job:read"))
        .await;
    let _ = mapped.expect(200);
    let entry = &world.audit("role.mapped").await[0];
    assert_eq!(
        (entry.actor_id.as_str(), entry.actor_type.as_str()),
        (id.as_str(), "api_key")
    );
    let credential = &entry.metadata.value()["credential"];
    assert_eq!(*credential, json!({ "type": "api_key", "id": id }));
}

#[tokio::test]
async fn the_first_of_bearer_token_key_and_cookie_decides_even_if_it_is_invalid() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (_, secret) = ada.key(&world, json!({ "scopes": ["job:read"] })).await;
    let path = format!("{ROLES}?orgId={}", ada.org);
    let bearer = format!("Bearer {}", ada.person.token);
    let mistyped = secret.replace("core_", "core_a");
    let of_session = ("authorization", bearer.as_str());
    let (good, bad) = (
        ("x-api-key", secret.as_str()),
        ("x-api-key", mistyped.as_str()),
    );
    let cookie = ("cookie", ada.person.cookie.as_str());
    for (headers, status) in [
        (vec![of_session, bad], 200),
        (vec![of_session, good], 200),
        (vec![good, cookie], 403),
        (vec![bad, cookie], 401),
        (vec![bad], 401),
        (vec![("authorization", "Bearer wrong"), good], 401),
        (vec![cookie], 200),
    ] {
        let answer = world
            .send_unidentified("GET", &path, &headers, Value::Null)
            .await;
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.json);
    }
}

#[tokio::test]
async fn wrong_keys_sent_to_iam_without_a_gateway_count_as_failed_authentications() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (_, secret) = ada.key(&world, json!({})).await;
    let path = format!("{ROLES}?orgId={}", ada.org);
    let call = async |key: &str| {
        let request = http::Request::get(&path)
            .header("x-api-key", key)
            .extension(core_http::kernel::PeerAddr(
                "198.51.100.7:1".parse().unwrap(),
            ));
        let request = request.body(core_http::kernel::empty_body()).unwrap();
        world.iam.raw(request).await
    };
    let _ = call(&secret).await.expect(200);
    for n in 0..10 {
        let wrong = call(&format!("core_wrong-{n}")).await;
        wrong.expect_error(401, "UNAUTHORIZED");
    }
    let locked_out = call(&secret).await.expect_error(429, "RATE_LIMITED");
    let policy = locked_out.header("ratelimit-policy");
    assert_eq!(policy, "\"authentication\";q=10;w=60");
    world.tick(60);
    let _ = call(&secret).await.expect(200);
}
