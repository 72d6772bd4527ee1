//! Validation of keys for services.

use serde_json::{Value, json};

use super::{DAY, DELETE, LIST, OrganizationOwner, VALIDATE};
use crate::iam::EVE;
use crate::world::{World, owner};

#[tokio::test]
async fn only_services_can_validate_a_key_and_see_its_owner() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, secret) = ada.key(&world, json!({ "expiresIn": DAY })).await;
    let expected = json!({
        "valid": true, "keyId": id, "platformId": ada.platform, "organizationId": ada.org,
        "userId": ada.person.user_id, "role": "owner", "permissions": ["*:*"],
        "expiresAt": "2027-01-16T08:00:00.000Z", "suspended": false,
        "rateLimit": { "limit": 600, "windowSeconds": 60, "remaining": 599, "resetAfter": 60 },
    });
    assert_eq!(world.validate_key(&secret).await, expected);
    world.set_platform_status(&ada.platform, "suspended").await;
    let suspended = world.validate_key(&secret).await;
    assert_eq!(
        (&suspended["valid"], &suspended["suspended"]),
        (&json!(true), &json!(true))
    );
    let body = json!({ "key": secret });
    let by = owner(&ada.platform);
    let member = world.iam.post(&by, VALIDATE, body.clone()).await;
    member.expect_error(403, "FORBIDDEN");
    let nobody = world.post(VALIDATE, body).await;
    nobody.expect_error(401, "UNAUTHORIZED");
    for bad in [
        json!({}),
        json!({ "key": "" }),
        json!({ "key": "x".repeat(513) }),
    ] {
        let refused = world
            .iam
            .post(&crate::world::operator(), VALIDATE, bad)
            .await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn every_reason_for_a_refusal_has_its_code() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, deleted) = ada.key(&world, json!({})).await;
    let body = json!({ "keyId": id });
    let _ = ada.post(&world, DELETE, body).await.expect(200);
    let (_, expiring) = ada.key(&world, json!({ "expiresIn": DAY })).await;
    let never = &World::new();
    let other = OrganizationOwner::create_in(never).await;
    let (_, unknown) = other.key(never, json!({ "prefix": "other" })).await;
    let mistyped = expiring.replace("core_", "core_x");
    world.tick(DAY - 1);
    assert_eq!(world.key_verdict(&expiring).await, "VALID");
    world.tick(1);
    for (secret, code) in [
        (expiring.as_str(), "EXPIRED"),
        (&deleted, "REVOKED"),
        (&unknown, "NOT_FOUND"),
        (&mistyped, "NOT_FOUND"),
        ("core_", "NOT_FOUND"),
        ("anything", "NOT_FOUND"),
        ("schl\u{fc}ssel", "NOT_FOUND"),
    ] {
        assert_eq!(world.key_verdict(secret).await, code, "{secret}");
    }
}

#[tokio::test]
async fn a_members_key_ends_with_the_membership_even_if_they_join_again() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let eve = world.sign_up(EVE).await;
    let _ = world.join([&ada.person, &eve], &ada.org, "member").await;
    let of = json!({ "organizationId": ada.org });
    let made = world.create_api_key(&eve.caller(), of).await.expect(200);
    let secret = made.text("key");
    assert_eq!(world.key_verdict(secret).await, "VALID");
    let listed = async || {
        let listed = world.iam.get(&eve.caller(), LIST).await.expect(200);
        listed.json["total"].clone()
    };
    assert_eq!(listed().await, 1);
    world.leave(&eve, &ada.org).await;
    assert_eq!(world.key_verdict(secret).await, "NOT_FOUND");
    // The same address may be invited again after 300 seconds.
    world.tick(300);
    let _ = world.join([&ada.person, &eve], &ada.org, "member").await;
    assert_eq!(world.key_verdict(secret).await, "NOT_FOUND");
    assert_eq!(listed().await, 0);
}

#[tokio::test]
async fn deleting_a_platform_deletes_its_keys() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (_, secret) = ada.key(&world, json!({})).await;
    let owned = json!({ "organizationOwned": true });
    let (_, of_organization) = ada.key(&world, owned).await;
    world.run_jobs().await;
    world
        .change_lifecycle_as_operator(&ada.platform, "delete")
        .await;
    world.finish_jobs().await;
    for secret in [secret, of_organization] {
        assert_eq!(world.key_verdict(&secret).await, "NOT_FOUND");
    }
}

#[tokio::test]
async fn the_last_use_is_recorded_at_most_once_per_minute() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (_, secret) = ada.key(&world, json!({})).await;
    let last_use = async || {
        let listed = ada.get(&world, LIST).await.expect(200);
        listed.json["apiKeys"][0]["lastRequest"].clone()
    };
    assert_eq!(last_use().await, Value::Null);
    for (seconds, expected) in [(5, "08:00:05"), (59, "08:00:05"), (1, "08:01:05")] {
        world.tick(seconds);
        assert_eq!(world.key_verdict(&secret).await, "VALID");
        let expected = format!("2027-01-15T{expected}.000Z");
        assert_eq!(last_use().await, expected);
    }
}
