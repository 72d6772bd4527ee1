//! API keys on every store.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{DAY, DELETE, GET, LIST, OrganizationOwner, ROTATE, UPDATE};
use crate::world::{World, on_every_store};

on_every_store! {
    keys_are_valid_until_rotation_deletion_or_expiry,
    concurrent_rotations_create_one_successor,
    keys_stay_valid_while_they_are_changed,
}

async fn keys_are_valid_until_rotation_deletion_or_expiry(world: World) {
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, first) = ada
        .key(&world, json!({ "scopes": ["job:read"], "name": "one" }))
        .await;
    let owned = json!({ "organizationOwned": true, "expiresIn": DAY });
    let (_, of_organization) = ada.key(&world, owned).await;
    assert_eq!(world.key_verdict(&first).await, "VALID");
    let body = json!({ "keyId": id, "overlap": 60 });
    let rotated = ada.post(&world, ROTATE, body).await.expect(200);
    for secret in [&*first, rotated.text("key"), &of_organization] {
        assert_eq!(world.key_verdict(secret).await, "VALID");
    }
    world.tick(60);
    assert_eq!(world.key_verdict(&first).await, "REVOKED");
    world.set_platform_status(&ada.platform, "suspended").await;
    let found = world.validate_key(rotated.text("key")).await;
    assert_eq!(
        (&found["suspended"], &found["permissions"]),
        (&json!(true), &json!(["job:read"]))
    );
    world.set_platform_status(&ada.platform, "active").await;
    let listed = ada.get(&world, LIST).await.expect(200);
    assert_eq!(listed.json["total"], 1);
    let path = format!("{LIST}?organizationOwned=true");
    let listed = ada.get(&world, &path).await.expect(200);
    assert_eq!(listed.json["total"], 1);
    let _ = ada
        .post(&world, DELETE, json!({ "keyId": id }))
        .await
        .expect(200);
    assert_eq!(world.key_verdict(rotated.text("key")).await, "REVOKED");
    world.tick(DAY);
    assert_eq!(world.key_verdict(&of_organization).await, "EXPIRED");
}

async fn concurrent_rotations_create_one_successor(world: World) {
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, first) = ada.key(&world, json!({})).await;
    let rotations = (0..4).map(|_| ada.post(&world, ROTATE, json!({ "keyId": id })));
    let answers = join_all(rotations).await;
    let successors: Vec<&str> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .map(|answer| answer.text("key"))
        .collect();
    assert_eq!(successors.len(), 1);
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!((refused.status.as_u16(), refused.code()), (409, "CONFLICT"));
    }
    for secret in [&*first, successors[0]] {
        assert_eq!(world.key_verdict(secret).await, "VALID");
    }
    assert_eq!(world.audit("api_key.rotated").await.len(), 1);
}

async fn keys_stay_valid_while_they_are_changed(world: World) {
    let ada = OrganizationOwner::create_in(&world).await;
    let (id, secret) = ada.key(&world, json!({})).await;
    // Each validation records a use of the key. Concurrent changes must succeed nevertheless.
    for round in 0..5 {
        world.tick(61);
        let uses = join_all((0..4).map(|_| world.key_verdict(&secret)));
        let body = json!({ "keyId": id, "name": format!("name {round}") });
        let (verdicts, changed) = tokio::join!(uses, ada.post(&world, UPDATE, body));
        let _ = changed.expect(200);
        assert!(
            verdicts.iter().all(|verdict| verdict == "VALID"),
            "{verdicts:?}"
        );
    }
    let shown = ada.get(&world, &format!("{GET}?id={id}")).await.expect(200);
    assert_eq!(shown.json["name"], "name 4");
    assert_ne!(shown.json["lastRequest"], Value::Null);
}
