//! What operators and services do at IAM.

use serde_json::{Value, json};

use super::world::{PASSWORD, World};

#[tokio::test]
async fn the_operator_organization_is_made_once_even_when_many_ask_at_once() {
    let world = World::new();
    let body = json!({});
    let asked = (0..5).map(|_| world.as_service("/api/core/bootstrap", &body));
    let mut statuses: Vec<_> = futures_util::future::join_all(asked)
        .await
        .iter()
        .map(|answer| answer.status.as_u16())
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409]);
}

#[tokio::test]
async fn the_owner_named_at_bootstrap_operates_at_once() {
    let world = World::new();
    let bearer = format!(
        "Bearer {}",
        world.sign_up("ada@example.org").await.expect(200).token()
    );
    let body = json!({ "email": "Ada@Example.org" });
    let made = world
        .as_service("/api/core/bootstrap", &body)
        .await
        .expect(201)
        .body;
    assert_eq!(made["type"], "core-operator");
    assert_eq!(made["slug"], "core-operator");
    assert_ne!(made["ownerId"], Value::Null);
    let session = world
        .get("/api/core/session", &[("authorization", &bearer)])
        .await
        .expect(200)
        .body;
    assert_eq!(session["effectiveRole"], "operator");
    assert_eq!(session["organization"]["id"], made["orgId"]);
    assert_eq!(session["platformId"], Value::Null);
}

#[tokio::test]
async fn an_unknown_owner_makes_no_organization() {
    let world = World::new();
    let body = json!({ "ownerId": "nobody" });
    world
        .as_service("/api/core/bootstrap", &body)
        .await
        .expect(404);
    let bad = json!({ "slug": "Not A Slug" });
    world
        .as_service("/api/core/bootstrap", &bad)
        .await
        .expect(400);
    world
        .as_service("/api/core/bootstrap", &json!({}))
        .await
        .expect(201);
}

#[tokio::test]
async fn the_routes_of_services_are_closed_to_people_and_strangers() {
    let world = World::new();
    let bearer = format!(
        "Bearer {}",
        world.sign_up("ada@example.org").await.expect(200).token()
    );
    let status = json!({ "platformId": "p-1", "status": "suspended" });
    let token = json!({ "token": "x" });
    for (path, body) in [
        ("/api/core/bootstrap", &json!({})),
        ("/internal/platform-status", &status),
        ("/api/validate-session", &token),
    ] {
        world.post(path, &[], body).await.expect(401);
        world
            .post(path, &[("authorization", "Bearer wrong")], body)
            .await
            .expect(401);
        world
            .post(path, &[("authorization", &bearer)], body)
            .await
            .expect(403);
    }
    let bad = json!({ "platformId": "", "status": "gone" });
    let refused = world
        .as_service("/internal/platform-status", &bad)
        .await
        .expect(400);
    assert_eq!(
        refused.body["error"]["details"]["issues"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        world.get("/health", &[]).await.expect(200).body["status"],
        "healthy"
    );
    world.sign_in("ada@example.org", PASSWORD).await.expect(200);
}
