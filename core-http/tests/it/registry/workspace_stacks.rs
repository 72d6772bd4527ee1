//! Workspace stacks: creation, default stacks, and deletion with their entity.

use serde_json::{Value, json};

use crate::world::{
    Answer, World, on_every_store, operator, owner, platform_path, send_concurrently,
};

fn one(platform: &str, stack: &str) -> String {
    platform_path(platform, &format!("/stacks/{stack}"))
}

impl World {
    async fn enter_stack(&self, platform: &str, body: Value) -> Answer {
        let path = platform_path(platform, "/stacks");
        let created = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        created
    }

    /// Returns the names of a tenant's default stacks.
    async fn defaults(&self, platform: &str, tenant: &str) -> Vec<String> {
        let path = platform_path(platform, &format!("/stacks?tenantId={tenant}"));
        let listed = self.get_record(&path).await;
        let stacks = listed.json["data"].as_array().unwrap().iter();
        let defaults = stacks.filter(|stack| stack["isDefault"] == true);
        let name = |stack: &Value| stack["name"].as_str().unwrap().to_owned();
        defaults.map(name).collect()
    }
}

#[tokio::test]
async fn a_new_stack_is_active_and_its_creation_returns_a_summary() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let tenant = world.tenant(&platform, "tenant").await;
    let body = json!({
        "tenantId": tenant, "name": " Shop ", "isDefault": true, "templateId": "web", "repoName": "acme/shop",
        "status": "failed",
    });
    let created = world.enter_stack(&platform, body).await.expect(201);
    let at = "2027-01-15T08:00:02.000Z";
    let mut wanted = json!({
        "id": created.id(), "name": "Shop", "status": "active", "isDefault": true, "createdAt": at,
    });
    assert_eq!((&created.json, created.header("etag")), (&wanted, "\"1\""));
    let path = one(&platform, &created.id());
    let shown = world.registry.get(&owner(&platform), &path).await;
    for (field, value) in [
        ("tenantId", tenant.as_str()),
        ("platformId", &platform),
        ("templateId", "web"),
        ("repoName", "acme/shop"),
        ("updatedAt", at),
    ] {
        wanted[field] = json!(value);
    }
    assert_eq!((&shown.json, shown.header("etag")), (&wanted, "\"1\""));
    let bare = world.workspace_stack(&platform, &tenant, "bare").await;
    let bare = world.get_record(&one(&platform, &bare)).await.json;
    let unset = ["templateId", "repoName", "isDefault"].map(|field| bare[field].clone());
    assert_eq!(unset, [Value::Null, Value::Null, json!(false)]);
}

#[tokio::test]
async fn a_stack_requires_an_active_entity_of_the_platform() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let other = world.create_platform("looms").await;
    let foreign = world.tenant(&other, "tenant").await;
    let parent = world.tenant(&platform, "parent").await;
    let child = world.subtenant(&platform, &parent, "child").await;
    let gone = world.tenant(&platform, "gone").await;
    world
        .delete_record(&platform_path(&platform, &format!("/entities/{gone}")))
        .await;
    for unknown in [foreign.as_str(), gone.as_str(), "nothing"] {
        let body = json!({ "tenantId": unknown, "name": "shop" });
        let refused = world.enter_stack(&platform, body).await;
        refused.expect_error(404, "NOT_FOUND");
    }
    let path = platform_path(&platform, &format!("/entities/{parent}"));
    let suspended = world
        .patch_record(&path, json!({ "status": "suspended" }))
        .await;
    let _ = suspended.expect(200);
    for tenant in [parent, child] {
        let body = json!({ "tenantId": tenant, "name": "shop" });
        let refused = world.enter_stack(&platform, body).await;
        refused.expect_error(409, "INVALID_STATE");
    }
}

#[tokio::test]
async fn a_stack_name_and_the_default_stack_are_unique_per_entity() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let first = world.tenant(&platform, "first").await;
    let second = world.tenant(&platform, "second").await;
    let create = async |tenant: &str, name: &str, default: bool| {
        let body = json!({ "tenantId": tenant, "name": name, "isDefault": default });
        world.enter_stack(&platform, body).await
    };
    let old = create(&first, "shop", true).await.expect(201).id();
    let _ = create(&second, "shop", true).await.expect(201);
    create(&first, "shop", true)
        .await
        .expect_error(409, "CONFLICT");
    assert_eq!(world.defaults(&platform, &first).await, ["shop"]);

    let _ = create(&first, "other", false).await.expect(201);
    let _ = create(&first, "blog", true).await.expect(201);
    assert_eq!(world.defaults(&platform, &first).await, ["blog"]);
    assert_eq!(world.defaults(&platform, &second).await, ["shop"]);
    let changes = world.audit("workspace_stack.updated").await;
    let [change] = &changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(change.entity_id, old);
    let listed = async |rest: &str| {
        let listed = world.get_record(&platform_path(&platform, rest)).await;
        let names = listed.each("name").into_iter().map(str::to_owned);
        names.collect::<Vec<_>>()
    };
    assert_eq!(listed("/stacks").await, ["blog", "other", "shop", "shop"]);
    let of_first = format!("/stacks?tenantId={first}");
    assert_eq!(listed(&of_first).await, ["blog", "other", "shop"]);
    assert!(listed("/stacks?tenantId=nothing").await.is_empty());
}

#[tokio::test]
async fn an_entity_with_stacks_can_only_be_deleted_in_a_cascade() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let tenant = world.tenant(&platform, "tenant").await;
    let stack = world.workspace_stack(&platform, &tenant, "shop").await;
    let path = platform_path(&platform, &format!("/entities/{tenant}"));
    for refused in [
        world.registry.delete(&operator(), &path).await,
        world
            .patch_record(&path, json!({ "status": "deleted" }))
            .await,
    ] {
        let refused = refused.expect_error(409, "CONFLICT");
        assert_eq!(refused.json["error"]["details"]["stacks"], 1);
    }
    world.delete_record(&format!("{path}?cascade=true")).await;
    world.assert_missing(&one(&platform, &stack)).await;
    assert_eq!(world.audit("workspace_stack.deleted").await.len(), 1);
}

async fn of_concurrent_default_stacks_one_remains_the_default(world: World) {
    let platform = world.create_platform("engines").await;
    let tenant = world.tenant(&platform, "tenant").await;
    // In the first round there is no earlier default stack to replace.
    for round in 0..3 {
        let requests = ["a", "b", "c"].map(|name| {
            let (api, path) = (world.registry.clone(), platform_path(&platform, "/stacks"));
            let name = format!("{name}-{round}");
            let body = json!({ "tenantId": tenant, "name": name, "isDefault": true });
            async move { api.post(&operator(), &path, body).await }
        });
        for answer in send_concurrently(requests).await {
            let _ = answer.expect(201);
        }
        let defaults = world.defaults(&platform, &tenant).await;
        assert_eq!(defaults.len(), 1, "{defaults:?}");
    }
}

on_every_store! { of_concurrent_default_stacks_one_remains_the_default }
