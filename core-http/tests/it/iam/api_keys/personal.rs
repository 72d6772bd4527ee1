//! Personal keys, which act for their owner alone, in no organization.

use core_domain::kernel::{ApiKeyId, Caller, UserId};
use serde_json::{Value, json};

use super::{CREATE, LIST, OrganizationOwner, ROLES, ROTATE, UPDATE};
use crate::iam::{CORE_SESSION, EVE, ORG_SETUP};
use crate::world::{World, on_every_store, operator, platform_path};

const PROFILE: &str = "/api/auth/profile";

/// Returns the expected validation result of a personal key.
fn expected_validation(id: &str, user: &str) -> Value {
    json!({
        "valid": true, "keyId": id, "platformId": null, "organizationId": null, "userId": user,
        "role": null, "permissions": [], "expiresAt": null, "suspended": false,
        "rateLimit": { "limit": 600, "windowSeconds": 60, "remaining": 599, "resetAfter": 60 },
    })
}

on_every_store! {
    people_without_an_organization_create_personal_keys,
}

async fn people_without_an_organization_create_personal_keys(world: World) {
    let eve = world.sign_up(EVE).await;
    let made = world
        .create_api_key(&eve.caller(), json!({ "name": "mine" }))
        .await;
    let made = made.expect(200);
    for field in ["organizationId", "platformId", "scopes"] {
        assert_eq!(made.json[field], Value::Null, "{field}");
    }
    assert_eq!(made.json["referenceId"], eve.user_id);
    assert_eq!(made.json["organizationOwned"], false);
    let secret = made.text("key");
    let validated = world.validate_key(secret).await;
    assert_eq!(validated, expected_validation(&made.id(), &eve.user_id));
    let profile = world
        .send_with_key(secret, "GET", PROFILE, Value::Null)
        .await;
    assert_eq!(profile.expect(200).json["email"], EVE);
    let entry = &world.audit("api_key.created").await[0];
    assert_eq!(entry.platform_id, None);
}

#[tokio::test]
async fn a_personal_key_of_an_owner_has_no_rights_in_the_organization() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    // An organization is active, so only an explicit `null` creates a personal key.
    let (_, of_organization) = ada.key(&world, json!({})).await;
    let (id, secret) = ada.key(&world, json!({ "organizationId": null })).await;
    let roles = format!("{ROLES}?orgId={}", ada.org);
    let map = json!({ "orgId": ada.org, "role": "auditor", "permissions": ["job:read"] });
    let read = world.send_with_key(&of_organization, "GET", &roles, Value::Null);
    let _ = read.await.expect(200);
    for (method, path, body) in [("GET", roles.as_str(), Value::Null), ("POST", ROLES, map)] {
        let refused = world.send_with_key(&secret, method, path, body).await;
        refused.expect_error(404, "NOT_FOUND");
    }
    // Another service gets the key as a gateway passes it on.
    let caller = Caller::ApiKey {
        key_id: ApiKeyId::parse(&id).unwrap(),
        user_id: UserId::parse(&ada.person.user_id),
        membership: None,
    };
    let platform = world
        .registry
        .get(&caller, &platform_path(&ada.platform, ""))
        .await;
    platform.expect_error(404, "NOT_FOUND");
    let platforms = world.registry.get(&caller, "/api/v1/platforms").await;
    assert_eq!(platforms.expect(200).json["data"], json!([]));
    let onboarding = json!({ "name": "Mine", "slug": "mine" });
    let onboarded = world
        .registry
        .post(&caller, "/api/v1/onboarding/start", onboarding)
        .await;
    assert!(!onboarded.is_success(), "{}", onboarded.json);
    // The key is not a session either.
    let set_up = json!({ "name": "A", "slug": "abc" });
    let of_key = json!({ "keyId": id });
    let renamed = json!({ "keyId": id, "name": "other" });
    for (method, path, body) in [
        ("GET", CORE_SESSION, Value::Null),
        ("GET", LIST, Value::Null),
        ("PATCH", PROFILE, json!({ "name": "Eve" })),
        ("POST", CREATE, json!({})),
        ("POST", UPDATE, renamed),
        ("POST", ROTATE, of_key),
        ("POST", ORG_SETUP, set_up),
    ] {
        let refused = world.send_with_key(&secret, method, path, body).await;
        let status = refused.status.as_u16();
        assert!(
            [401, 403].contains(&status),
            "{method} {path}: {}",
            refused.json
        );
    }
    // The profile belongs to the person. Keys of the organization cannot read it.
    let refused = world.send_with_key(&of_organization, "GET", PROFILE, Value::Null);
    refused.await.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_personal_key_takes_no_scopes_no_rate_limit_and_no_organization() {
    let world = World::new();
    let eve = world.sign_up(EVE).await;
    for (body, status, code) in [
        (json!({ "scopes": ["job:read"] }), 403, "FORBIDDEN"),
        (json!({ "requestsPerMinute": 9_000 }), 403, "FORBIDDEN"),
        (
            json!({ "organizationOwned": true }),
            400,
            "VALIDATION_ERROR",
        ),
    ] {
        let refused = world.create_api_key(&eve.caller(), body).await;
        refused.expect_error(status, code);
    }
}

#[tokio::test]
async fn a_personal_key_outlives_memberships_and_suspensions_until_its_owner_is_banned() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let eve = world.sign_up(EVE).await;
    let _ = world.join([&ada.person, &eve], &ada.org, "member").await;
    let personal = json!({ "organizationId": null });
    let made = world
        .create_api_key(&eve.caller(), personal)
        .await
        .expect(200);
    let secret = made.text("key");
    world.set_platform_status(&ada.platform, "suspended").await;
    assert_eq!(world.validate_key(secret).await["suspended"], false);
    world.set_platform_status(&ada.platform, "active").await;
    world.leave(&eve, &ada.org).await;
    assert_eq!(world.key_verdict(secret).await, "VALID");
    let ban = format!("/api/core/users/{}/ban", eve.user_id);
    let _ = world
        .iam
        .post(&operator(), &ban, json!({}))
        .await
        .expect(200);
    assert_eq!(world.key_verdict(secret).await, "REVOKED");
}
