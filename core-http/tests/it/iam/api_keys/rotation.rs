//! Rotation: a key gets a new secret, while the former one stays valid for an overlap.

use serde_json::json;

use super::{DAY, OrganizationOwner, ROTATE, UPDATE};
use crate::world::World;

#[tokio::test]
async fn the_former_secret_stays_valid_until_the_overlap_ends() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, first) = ada.key(&world, json!({ "prefix": "x-" })).await;
    let body = json!({ "keyId": id, "overlap": 3_600 });
    let rotated = ada.post(&world, ROTATE, body).await.expect(200);
    let second = rotated.text("key").to_owned();
    assert!(second.starts_with("core_x-") && second != first);
    assert_eq!(rotated.json["displayStart"], second[..12]);
    assert_eq!(rotated.json["overlapEndsAt"], "2027-01-15T09:00:00.000Z");
    let known = world.validate_key(&first).await;
    assert_eq!(known["expiresAt"], "2027-01-15T09:00:00.000Z");
    assert_eq!(world.validate_key(&second).await["expiresAt"], json!(null));
    for (seconds, verdict) in [(3_599, "VALID"), (1, "REVOKED")] {
        world.tick(seconds);
        assert_eq!(world.key_verdict(&first).await, verdict);
        assert_eq!(world.key_verdict(&second).await, "VALID");
    }
    // Another rotation removes the first secret.
    ada.proves_who_she_is(&world).await;
    let again = ada.post(&world, ROTATE, json!({ "keyId": id })).await;
    let again = again.expect(200);
    assert_eq!(again.json["overlapEndsAt"], "2027-01-16T09:00:00.000Z");
    assert_eq!(world.key_verdict(&first).await, "NOT_FOUND");
    assert_eq!(world.key_verdict(&second).await, "VALID");
    assert_eq!(world.audit("api_key.rotated").await.len(), 2);
}

#[tokio::test]
async fn a_second_overlap_is_refused_and_a_zero_overlap_ends_all_former_secrets() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, first) = ada.key(&world, json!({})).await;
    let rotate = async |overlap: u64| {
        let body = json!({ "keyId": id, "overlap": overlap });
        ada.post(&world, ROTATE, body).await
    };
    let second = rotate(DAY).await.expect(200).text("key").to_owned();
    rotate(1).await.expect_error(409, "CONFLICT");
    assert_eq!(world.key_verdict(&first).await, "VALID");
    let third = rotate(0).await.expect(200).text("key").to_owned();
    assert_eq!(world.key_verdict(&first).await, "NOT_FOUND");
    assert_eq!(world.key_verdict(&second).await, "REVOKED");
    assert_eq!(world.key_verdict(&third).await, "VALID");
    let _ = rotate(7 * DAY).await.expect(200);
}

#[tokio::test]
async fn disabled_and_expired_keys_cannot_be_rotated() {
    let world = World::new();
    let ada = OrganizationOwner::create_in(&world).await;
    let (disabled, _) = ada.key(&world, json!({})).await;
    let body = json!({ "keyId": disabled, "enabled": false });
    let _ = ada.post(&world, UPDATE, body).await.expect(200);
    let (expired, secret) = ada.key(&world, json!({ "expiresIn": DAY })).await;
    world.tick(DAY);
    ada.proves_who_she_is(&world).await;
    for id in [disabled, expired] {
        let refused = ada.post(&world, ROTATE, json!({ "keyId": id })).await;
        refused.expect_error(409, "INVALID_STATE");
    }
    assert_eq!(world.key_verdict(&secret).await, "EXPIRED");
}
