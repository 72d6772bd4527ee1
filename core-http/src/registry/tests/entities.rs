//! The tree of entities.

use core_domain::registry::MAX_DEPTH;
use serde_json::{Value, json};

use super::world::{Says, World, at, owner, resource_body};
use crate::kernel::testing::operator;

fn entity(kind: &str, slug: &str, parent: Value) -> Value {
    json!({ "name": "E", "slug": slug, "type": kind, "parentId": parent })
}

fn one(platform: &str, entity: &str) -> String {
    at(platform, &format!("/entities/{entity}"))
}

#[tokio::test]
async fn a_tenant_stands_at_the_top_and_a_subtenant_below_something_of_the_same_platform() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let other = world.platform("looms").await;
    let tenant = world.tenant(&platform, "tenant").await;
    let foreign = world.tenant(&other, "foreign").await;
    let all = at(&platform, "/entities");
    let send = async |body| world.post(&owner(&platform), &all, body).await;
    let made = send(entity("subtenant", "below", json!(tenant)))
        .await
        .expect(201);
    assert_eq!(made.json["parentId"], tenant.as_str());
    assert_eq!(
        (&made.json["type"], &made.json["status"]),
        (&json!("subtenant"), &json!("active"))
    );
    for (kind, parent, issue) in [
        ("tenant", json!(tenant), "parentId: not_allowed"),
        ("tenant", json!("nothing"), "parentId: not_allowed"),
        ("subtenant", Value::Null, "parentId: required"),
    ] {
        let refused = send(entity(kind, "a", parent))
            .await
            .refused(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), [issue]);
    }
    for parent in [foreign.as_str(), "nothing"] {
        send(entity("subtenant", "a", json!(parent)))
            .await
            .refused(404, "NOT_FOUND");
    }
    let below = made.id();
    world
        .delete(&owner(&platform), &one(&platform, &below))
        .await
        .expect(200);
    send(entity("subtenant", "a", json!(below)))
        .await
        .refused(404, "NOT_FOUND");
}

#[tokio::test]
async fn siblings_have_slugs_of_their_own_and_deleted_ones_do_not_count() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let other = world.platform("looms").await;
    let (one_tenant, two) = (
        world.tenant(&platform, "one").await,
        world.tenant(&platform, "two").await,
    );
    let all = at(&platform, "/entities");
    let send = async |body| world.post(&operator(), &all, body).await;
    send(entity("tenant", "one", Value::Null))
        .await
        .refused(409, "SLUG_TAKEN");
    let child = send(entity("subtenant", "one", json!(one_tenant)))
        .await
        .expect(201)
        .id();
    send(entity("subtenant", "one", json!(one_tenant)))
        .await
        .refused(409, "SLUG_TAKEN");
    send(entity("subtenant", "one", json!(two)))
        .await
        .expect(201);
    world.tenant(&other, "one").await;
    world
        .delete(&operator(), &one(&platform, &child))
        .await
        .expect(200);
    send(entity("subtenant", "one", json!(one_tenant)))
        .await
        .expect(201);
}

#[tokio::test]
async fn a_tree_has_sixteen_levels_and_is_shown_root_first_upwards_and_breadth_first_downwards() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let mut line = vec![world.tenant(&platform, "level").await];
    for _ in 1..MAX_DEPTH {
        line.push(
            world
                .subtenant(&platform, line.last().unwrap(), "level")
                .await,
        );
    }
    let last = line.last().unwrap();
    let too_deep = entity("subtenant", "level", json!(last));
    world
        .post(&operator(), &at(&platform, "/entities"), too_deep)
        .await
        .refused(409, "CONFLICT");
    let above = world
        .get(&operator(), &format!("{}/ancestors", one(&platform, last)))
        .await
        .expect(200);
    assert_eq!(above.each("id"), line[..15]);
    let below = world
        .get(
            &operator(),
            &format!("{}/descendants", one(&platform, &line[0])),
        )
        .await
        .expect(200);
    assert_eq!(below.each("id"), line[1..]);

    let root = world.tenant(&platform, "root").await;
    let left = world.subtenant(&platform, &root, "left").await;
    let right = world.subtenant(&platform, &root, "right").await;
    let deep = world.subtenant(&platform, &left, "deep").await;
    let gone = world.subtenant(&platform, &right, "gone").await;
    world
        .delete(&operator(), &one(&platform, &gone))
        .await
        .expect(200);
    let below = world
        .get(
            &operator(),
            &format!("{}/descendants", one(&platform, &root)),
        )
        .await
        .expect(200);
    let ids = below.each("id");
    assert_eq!(ids.len(), 3);
    assert!(ids[..2].contains(&left.as_str()) && ids[..2].contains(&right.as_str()));
    assert_eq!(ids[2], deep);
    let above = world
        .get(&operator(), &format!("{}/ancestors", one(&platform, &root)))
        .await
        .expect(200);
    assert_eq!(above.json, json!({ "data": [] }));
}

#[tokio::test]
async fn what_something_lives_below_is_not_deleted() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let resource = world.resource(&platform, &child, "engines-db").await;
    let caller = owner(&platform);
    let deleted = json!({ "status": "deleted" });
    for (entity, details) in [
        (&parent, json!({ "children": 1, "resources": 0 })),
        (&child, json!({ "children": 0, "resources": 1 })),
    ] {
        let refused = world
            .delete(&caller, &one(&platform, entity))
            .await
            .refused(409, "CONFLICT");
        assert_eq!(refused.json["error"]["details"], details);
        world
            .patch(&caller, &one(&platform, entity), deleted.clone())
            .await
            .refused(409, "CONFLICT");
    }
    world
        .delete(&caller, &at(&platform, &format!("/resources/{resource}")))
        .await
        .expect(200);
    let gone = world
        .patch(&caller, &one(&platform, &child), deleted)
        .await
        .expect(200);
    assert_eq!(gone.json["status"], "deleted");
    assert!(!gone.json["deletedAt"].is_null());
    let done = world
        .delete(&caller, &one(&platform, &parent))
        .await
        .expect(200);
    assert_eq!(done.json, json!({ "success": true }));
    for entity in [&parent, &child] {
        world
            .delete(&caller, &one(&platform, entity))
            .await
            .refused(404, "NOT_FOUND");
        world
            .get(&caller, &one(&platform, entity))
            .await
            .refused(404, "NOT_FOUND");
        let below = format!("{}/descendants", one(&platform, entity));
        world.get(&caller, &below).await.refused(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn nothing_is_added_to_or_below_what_is_suspended() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let set = async |status: &str| {
        let body = json!({ "status": status });
        world
            .patch(&operator(), &one(&platform, &parent), body)
            .await
            .expect(200)
    };
    assert_eq!(set("suspended").await.json["status"], "suspended");
    for entity_id in [&parent, &child] {
        let body = entity("subtenant", "new", json!(entity_id));
        world
            .post(&operator(), &at(&platform, "/entities"), body)
            .await
            .refused(409, "INVALID_STATE");
        let resources = format!("{}/resources", one(&platform, entity_id));
        world
            .post(&operator(), &resources, resource_body("x"))
            .await
            .refused(409, "INVALID_STATE");
    }
    assert_eq!(set("active").await.json["status"], "active");
    let resources = format!("{}/resources", one(&platform, &child));
    world
        .post(&operator(), &resources, resource_body("x"))
        .await
        .expect(201);
}

#[tokio::test]
async fn the_list_is_filtered_by_type() {
    let world = World::new();
    let platform = world.platform("engines").await;
    let tenant = world.tenant(&platform, "tenant").await;
    let subtenant = world.subtenant(&platform, &tenant, "sub").await;
    for (query, wanted) in [
        ("", vec![&subtenant, &tenant]),
        ("?type=tenant", vec![&tenant]),
        ("?type=subtenant", vec![&subtenant]),
    ] {
        let listed = world
            .get(&operator(), &at(&platform, &format!("/entities{query}")))
            .await
            .expect(200);
        assert_eq!(listed.each("id"), wanted, "{query}");
    }
}

#[tokio::test]
async fn a_parent_that_is_deleted_while_a_child_is_made_has_no_child_or_is_not_deleted() {
    for _ in 0..20 {
        let world = World::new();
        let platform = world.platform("engines").await;
        let parent = world.tenant(&platform, "parent").await;
        let body = entity("subtenant", "child", json!(parent));
        let caller = operator();
        let (all, parent_path) = (at(&platform, "/entities"), one(&platform, &parent));
        let (made, deleted) = tokio::join!(
            world.post(&caller, &all, body),
            world.delete(&caller, &parent_path),
        );
        let outcome = (made.status.as_u16(), deleted.status.as_u16());
        assert!(
            outcome == (201, 409) || outcome == (404, 200),
            "{outcome:?}"
        );
    }
}
