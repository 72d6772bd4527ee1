//! Setting up organizations, and the bootstrap of the operator organization.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{ADA, BOOTSTRAP, CORE_SESSION, EVE, ORG_SETUP};
use crate::world::{PASSWORD, SERVICE_KEY, World, on_every_store, operator, platform_path};

async fn acts_for(world: &World, token: &str) -> Value {
    let shown = world
        .send_with_bearer(token, "GET", CORE_SESSION)
        .await
        .expect(200);
    shown.json["organization"]["id"].clone()
}

#[tokio::test]
async fn setting_up_an_organization_makes_the_caller_its_owner_and_activates_it() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let made = world.set_up_organization(&ada, "engines").await.expect(201);
    let answered = json!({
        "orgId": made.json["orgId"], "platformId": made.json["platformId"], "slug": "engines",
        "name": "Engines",
    });
    assert_eq!(made.json, answered);
    let path = platform_path(made.text("platformId"), "");
    let platform = world.registry.get(&operator(), &path).await.expect(200);
    let named = (platform.text("name"), platform.text("slug"));
    assert_eq!(named, ("Engines", "engines"));
    let again = world.set_up_organization(&ada, "engines").await;
    again.expect_error(409, "SLUG_TAKEN");
    world.tick(1);
    let second = world.set_up_organization(&ada, "looms").await.expect(201);
    assert_eq!(acts_for(&world, &ada.token).await, second.json["orgId"]);
    // A new session acts for the organization that was joined first.
    let later = world.sign_in(ADA, PASSWORD).await.expect(200);
    let first = &made.json["orgId"];
    assert_eq!(acts_for(&world, later.text("token")).await, *first);
}

#[tokio::test]
async fn setting_up_an_organization_requires_the_session_cookie() {
    let world = World::new();
    let ada = world.sign_up(ADA).await;
    let other = world.sign_in(ADA, PASSWORD).await.expect(200);
    let cookie = ("cookie", &*ada.cookie);
    let bearers = [&*ada.token, other.text("token"), SERVICE_KEY, "wrong"];
    let bearers = bearers.map(|token| format!("Bearer {token}"));
    let [own, other, key, wrong] = bearers.each_ref().map(|b| ("authorization", b.as_str()));
    for (slug, headers, expected) in [
        ("a2", &[own][..], 401),
        ("a3", &[key], 401),
        ("a5", &[cookie, key], 401),
        ("a6", &[cookie, wrong], 401),
        ("a7", &[cookie, other], 401),
        ("a8", &[cookie], 201),
        ("a9", &[cookie, own], 201),
    ] {
        let body = json!({ "name": "Engines", "slug": slug });
        let answer = world
            .send_unidentified("POST", ORG_SETUP, headers, body)
            .await;
        assert_eq!(answer.status, expected, "{slug}: {}", answer.json);
    }
}

#[tokio::test]
async fn after_bootstrap_the_owners_sessions_without_an_organization_are_operators() {
    let world = World::new();
    let busy = world.sign_up(ADA).await;
    let free = world.sign_in(ADA, PASSWORD).await.expect(200);
    let engines = world
        .set_up_organization(&busy, "engines")
        .await
        .expect(201)
        .json;
    world.confirm(&busy).await;
    let body = json!({ "email": "Ada@Example.org" });
    let made = world
        .post_with_service_key(BOOTSTRAP, &body)
        .await
        .expect(201)
        .json;
    let answered = json!({
        "orgId": made["orgId"], "name": "Core Operator", "slug": "core-operator",
        "type": "core-operator", "ownerId": busy.user_id,
    });
    assert_eq!(made, answered);
    let free = world
        .send_with_bearer(free.text("token"), "GET", CORE_SESSION)
        .await
        .json;
    let fields = ["effectiveRole", "role", "platformId", "tenant"].map(|name| &free[name]);
    assert_eq!(json!(fields), json!(["operator", "owner", null, null]));
    assert_eq!(free["organization"]["id"], made["orgId"]);
    assert_eq!(acts_for(&world, &busy.token).await, engines["orgId"]);
}

#[tokio::test]
async fn bootstrap_refuses_an_owner_named_by_an_unconfirmed_address() {
    let world = World::new();
    let mallory = world.sign_up(ADA).await;
    let body = json!({ "email": ADA });
    let refused = world.post_with_service_key(BOOTSTRAP, &body).await;
    let refused = refused.expect_error(409, "CONFLICT");
    let message = refused.json["error"]["message"].as_str().unwrap();
    assert!(message.contains("ownerId"), "{message}");
    assert_eq!(acts_for(&world, &mallory.token).await, Value::Null);
    // A caller who names the id has identified the account.
    let body = json!({ "ownerId": mallory.user_id, "email": ADA });
    let _ = world
        .post_with_service_key(BOOTSTRAP, &body)
        .await
        .expect(201);
}

#[tokio::test]
async fn bootstrap_uses_the_given_name_and_prefers_the_owner_id_to_the_address() {
    let world = World::new();
    let [ada, _] = [world.sign_up(ADA).await, world.sign_up(EVE).await];
    let _ = world.set_up_organization(&ada, "engines").await.expect(201);
    for (body, status, code) in [
        (json!({ "ownerId": "nobody" }), 404, "NOT_FOUND"),
        (json!({ "email": "nobody@example.org" }), 404, "NOT_FOUND"),
        (json!({ "slug": "engines" }), 409, "SLUG_TAKEN"),
    ] {
        let refused = world.post_with_service_key(BOOTSTRAP, &body).await;
        refused.expect_error(status, code);
    }
    let body = json!({ "name": "Staff", "slug": "staff", "ownerId": ada.user_id, "email": EVE });
    let made = world
        .post_with_service_key(BOOTSTRAP, &body)
        .await
        .expect(201);
    let named = (made.text("name"), made.text("slug"), made.text("ownerId"));
    assert_eq!(named, ("Staff", "staff", &*ada.user_id));
}

async fn concurrent_bootstraps_create_one_operator_organization(world: World) {
    let body = json!({});
    let asked = (0..5).map(|_| world.post_with_service_key(BOOTSTRAP, &body));
    let answers = join_all(asked).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.code() == "CONFLICT");
    assert_eq!((made, refused.count()), (1, 4));
}

on_every_store! { concurrent_bootstraps_create_one_operator_organization }
