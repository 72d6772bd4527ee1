//! The tree of entities.

use core_domain::registry::MAX_DEPTH;
use serde_json::{Value, json};

use crate::world::{Answer, World, operator, owner, plain_member, platform_path, resource_body};

fn one(platform: &str, entity: &str) -> String {
    platform_path(platform, &format!("/entities/{entity}"))
}

impl World {
    async fn add_entity(&self, platform: &str, kind: &str, slug: &str, parent: Value) -> Answer {
        let body = json!({ "name": "E", "slug": slug, "type": kind, "parentId": parent });
        let path = platform_path(platform, "/entities");
        self.registry.post(&owner(platform), &path, body).await
    }
}

#[tokio::test]
async fn a_tenant_has_no_parent_and_a_subtenant_has_one_of_the_same_platform() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let tenant = world.tenant(&platform, "tenant").await;
    let other = world.create_platform("looms").await;
    let foreign = world.tenant(&other, "foreign").await;
    let add = async |kind, parent| world.add_entity(&platform, kind, "a", parent).await;
    for (kind, parent, issue) in [
        ("tenant", json!(tenant), "parentId: not_allowed"),
        ("tenant", json!("nothing"), "parentId: not_allowed"),
        ("subtenant", Value::Null, "parentId: required"),
    ] {
        let refused = add(kind, parent)
            .await
            .expect_error(400, "VALIDATION_ERROR");
        assert_eq!(refused.issues(), [issue]);
    }
    let below = add("subtenant", json!(tenant)).await.expect(201);
    assert_eq!(below.text("parentId"), tenant);
    assert_eq!(
        (below.text("type"), below.text("status")),
        ("subtenant", "active")
    );
    world.delete_record(&one(&platform, &below.id())).await;
    for parent in [foreign, "nothing".to_owned(), below.id()] {
        add("subtenant", json!(parent))
            .await
            .expect_error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn slugs_are_unique_among_siblings_that_are_not_deleted() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let first = world.tenant(&platform, "one").await;
    let second = world.tenant(&platform, "two").await;
    let other = world.create_platform("looms").await;
    world.tenant(&other, "one").await;
    let below = async |parent: &str| {
        world
            .add_entity(&platform, "subtenant", "one", json!(parent))
            .await
    };
    let at_the_top = world
        .add_entity(&platform, "tenant", "one", Value::Null)
        .await;
    at_the_top.expect_error(409, "SLUG_TAKEN");
    let child = below(&first).await.expect(201).id();
    below(&first).await.expect_error(409, "SLUG_TAKEN");
    let _ = below(&second).await.expect(201);
    world.delete_record(&one(&platform, &child)).await;
    let _ = below(&first).await.expect(201);
}

#[tokio::test]
async fn a_tree_has_sixteen_levels_and_lists_ancestors_root_first_and_descendants_by_level() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let shown = async |entity: &str, direction: &str| -> Vec<String> {
        let path = format!("{}/{direction}", one(&platform, entity));
        let listed = world.get_record(&path).await;
        listed.each("id").into_iter().map(str::to_owned).collect()
    };
    let mut line = vec![world.tenant(&platform, "level").await];
    for _ in 1..MAX_DEPTH {
        let next = world
            .subtenant(&platform, line.last().unwrap(), "level")
            .await;
        line.push(next);
    }
    let last = line.last().unwrap();
    let too_deep = world
        .add_entity(&platform, "subtenant", "level", json!(last))
        .await;
    too_deep.expect_error(409, "CONFLICT");
    assert_eq!(shown(last, "ancestors").await, line[..15]);
    assert_eq!(shown(&line[0], "descendants").await, line[1..]);

    let root = world.tenant(&platform, "root").await;
    let left = world.subtenant(&platform, &root, "left").await;
    let right = world.subtenant(&platform, &root, "right").await;
    let deep = world.subtenant(&platform, &left, "deep").await;
    let gone = world.subtenant(&platform, &right, "gone").await;
    world.delete_record(&one(&platform, &gone)).await;
    let below = shown(&root, "descendants").await;
    assert_eq!(below.len(), 3);
    assert!(below[..2].contains(&left) && below[..2].contains(&right));
    assert_eq!(below[2], deep);
    assert!(shown(&root, "ancestors").await.is_empty());
}

#[tokio::test]
async fn an_entity_with_children_or_resources_cannot_be_deleted() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let resource = world.resource(&platform, &child, "engines-db").await;
    let caller = owner(&platform);
    let delete = async |path: &str| world.registry.delete(&caller, path).await;
    let set = async |entity: &str, status: &str| {
        let (path, body) = (one(&platform, entity), json!({ "status": status }));
        world.registry.patch(&caller, &path, body).await
    };
    for (entity, children, resources) in [(&parent, 1, 0), (&child, 0, 1)] {
        let refused = delete(&one(&platform, entity))
            .await
            .expect_error(409, "CONFLICT");
        let details = json!({
            "children": children, "resources": resources, "stacks": 0, "features": 0,
        });
        assert_eq!(refused.json["error"]["details"], details);
        set(entity, "deleted").await.expect_error(409, "CONFLICT");
    }
    let _ = delete(&platform_path(&platform, &format!("/resources/{resource}")))
        .await
        .expect(200);
    let gone = set(&child, "deleted").await.expect(200);
    assert_eq!(gone.text("deletedAt"), "2027-01-15T08:00:04.000Z");
    let _ = set(&parent, "suspended").await.expect(200);
    let _ = delete(&one(&platform, &parent)).await.expect(200);
    for entity in [&parent, &child] {
        delete(&one(&platform, entity))
            .await
            .expect_error(404, "NOT_FOUND");
        for list in ["", "/descendants", "/ancestors", "/resources"] {
            let path = format!("{}{list}", one(&platform, entity));
            let missing = world.registry.get(&caller, &path).await;
            missing.expect_error(404, "NOT_FOUND");
        }
    }
}

#[tokio::test]
async fn an_operator_can_delete_a_whole_tree_with_its_resources() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let root = world.tenant(&platform, "root").await;
    let child = world.subtenant(&platform, &root, "child").await;
    let leaf = world.subtenant(&platform, &child, "leaf").await;
    let kept = world.tenant(&platform, "kept").await;
    for (entity, name) in [(&root, "a-db"), (&leaf, "b-db"), (&kept, "c-db")] {
        world.resource(&platform, entity, name).await;
    }
    let tree = format!("{}?cascade=true", one(&platform, &root));
    let refused = world.registry.delete(&owner(&platform), &tree).await;
    refused.expect_error(403, "FORBIDDEN");
    let name = json!({ "name": "Root" });
    let renamed = world.patch_record(&one(&platform, &root), name).await;
    let _ = renamed.expect(200);
    // `If-Match` applies to the root and not to the records below it.
    let caller = operator();
    for (tag, status) in [("\"1\"", 412), ("\"2\"", 200)] {
        let tag = [("if-match", tag)];
        let answer = world
            .registry
            .send(&caller, "DELETE", &tree, &tag, Value::Null);
        let _ = answer.await.expect(status);
    }
    for list in ["/entities", "/resources"] {
        assert_eq!(
            world.count(&platform_path(&platform, list)).await,
            1,
            "{list}"
        );
    }
    for (action, count) in [("entity.deleted", 3), ("resource.deleted", 2)] {
        assert_eq!(world.audit(action).await.len(), count, "{action}");
    }
}

#[tokio::test]
async fn nothing_can_be_added_to_or_below_a_suspended_entity() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let set = async |status: &str| {
        let (path, body) = (one(&platform, &parent), json!({ "status": status }));
        let changed = world.patch_record(&path, body).await.expect(200);
        assert_eq!(changed.text("status"), status);
    };
    let add = async |entity: &str, number: u32| {
        let slug = format!("new-{number}");
        let resources = format!("{}/resources", one(&platform, entity));
        let job = json!({
            "platformId": platform, "planTier": "x", "billingEmail": "a@b.test", "defaultEntityId": entity,
        });
        [
            world
                .add_entity(&platform, "subtenant", &slug, json!(entity))
                .await,
            world
                .registry
                .post(&operator(), &resources, resource_body(&slug))
                .await,
            world
                .provisioning
                .post(&operator(), "/api/v1/provision/platform", job)
                .await,
        ]
    };
    set("suspended").await;
    for entity in [&parent, &child] {
        for answer in add(entity, 0).await {
            answer.expect_error(409, "INVALID_STATE");
        }
    }
    set("active").await;
    for (number, entity) in [(1, &parent), (2, &child)] {
        for answer in add(entity, number).await {
            assert!(answer.status.is_success(), "{}", answer.json);
        }
    }
    for action in ["entity.suspended", "entity.activated"] {
        assert_eq!(world.audit(action).await.len(), 1, "{action}");
    }
}

#[tokio::test]
async fn the_list_is_filtered_by_type() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let tenant = world.tenant(&platform, "tenant").await;
    let subtenant = world.subtenant(&platform, &tenant, "sub").await;
    let list = async |query: &str| {
        let path = platform_path(&platform, &format!("/entities{query}"));
        world.registry.get(&plain_member(&platform), &path).await
    };
    for (query, wanted) in [
        ("", vec![&subtenant, &tenant]),
        ("?type=tenant", vec![&tenant]),
        ("?type=subtenant", vec![&subtenant]),
    ] {
        assert_eq!(list(query).await.expect(200).each("id"), wanted, "{query}");
    }
    for query in ["?type=moon", "?includeDeleted=maybe"] {
        list(query).await.expect_error(400, "VALIDATION_ERROR");
    }
}
