//! Setting up an organization.

use serde_json::json;

use super::world::{KEY, ORIGIN, PASSWORD, World};

#[tokio::test]
async fn whoever_sets_up_an_organization_owns_it_and_acts_for_it_at_once() {
    let world = World::new();
    let cookie = world.sign_up("ada@example.org").await.expect(200).cookie();
    let own = [("cookie", cookie.as_str()), ("origin", ORIGIN)];
    let body =
        json!({ "name": "Engines", "slug": "engines", "platformId": "mine", "ownerId": "eve" });
    let made = world
        .post("/api/core/org-setup", &own, &body)
        .await
        .expect(201)
        .body;
    let mut fields: Vec<_> = made.as_object().unwrap().keys().cloned().collect();
    fields.sort();
    assert_eq!(fields, ["name", "orgId", "platformId", "slug"]);
    assert_ne!(made["platformId"], "mine");
    let session = world.get("/api/core/session", &own).await.expect(200).body;
    assert_eq!(session["organization"]["id"], made["orgId"]);
    assert_eq!(session["platformId"], made["platformId"]);
    assert_eq!(session["role"], "owner");

    let again = world
        .post("/api/core/org-setup", &own, &body)
        .await
        .expect(409);
    assert_eq!(again.body["error"]["code"], "SLUG_TAKEN");
    let second = json!({ "name": "Looms", "slug": "looms" });
    world
        .post("/api/core/org-setup", &own, &second)
        .await
        .expect(201);
}

#[tokio::test]
async fn only_a_cookie_sets_up_an_organization() {
    let world = World::new();
    let answer = world.sign_up("ada@example.org").await.expect(200);
    let (cookie, body) = (
        answer.cookie(),
        json!({ "name": "Engines", "slug": "engines" }),
    );
    let bearers =
        [answer.token(), KEY.to_owned(), "wrong".to_owned()].map(|t| format!("Bearer {t}"));
    for bearer in &bearers {
        let headers = [("authorization", bearer.as_str())];
        let refused = world
            .post("/api/core/org-setup", &headers, &body)
            .await
            .expect(401);
        assert_eq!(refused.body["error"]["code"], "UNAUTHORIZED");
    }
    let other = world.sign_in("ada@example.org", PASSWORD).await.expect(200);
    let other = format!("Bearer {}", other.token());
    for bearer in bearers[1..].iter().chain([&other]) {
        let both = [("cookie", &*cookie), ("authorization", bearer.as_str())];
        world
            .post("/api/core/org-setup", &both, &body)
            .await
            .expect(401);
    }
    world
        .post("/api/core/org-setup", &[], &body)
        .await
        .expect(401);
    world
        .post("/api/core/org-setup", &[("cookie", &cookie)], &body)
        .await
        .expect(201);
    let both = [("cookie", &*cookie), ("authorization", &*bearers[0])];
    let looms = json!({ "name": "Looms", "slug": "looms" });
    world
        .post("/api/core/org-setup", &both, &looms)
        .await
        .expect(201);
}

#[tokio::test]
async fn everything_that_is_wrong_with_the_organization_is_said_at_once() {
    let world = World::new();
    let cookie = world.sign_up("ada@example.org").await.expect(200).cookie();
    let own = [("cookie", cookie.as_str()), ("origin", ORIGIN)];
    for body in [
        json!({}),
        json!({ "name": "", "slug": "Not A Slug" }),
        json!({ "name": "x".repeat(101), "slug": "Not A Slug" }),
        json!({ "name": 1, "slug": "x".repeat(64) }),
    ] {
        let refused = world
            .post("/api/core/org-setup", &own, &body)
            .await
            .expect(400);
        assert_eq!(
            refused.body["error"]["details"]["issues"]
                .as_array()
                .unwrap()
                .len(),
            2,
            "{body}"
        );
    }
}
