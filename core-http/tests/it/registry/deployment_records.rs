//! Deployment records that external tools create, and their conflicts with deployments of the suite.

use serde_json::{Value, json};

use crate::world::{
    Answer, World, on_every_store, operator, owner, platform_path, send_concurrently,
};

fn one(platform: &str, deployment: &str) -> String {
    platform_path(platform, &format!("/deployments/{deployment}"))
}

fn body(key: &str) -> Value {
    json!({ "idempotencyKey": key, "userId": "ada", "projectName": "engines-site" })
}

impl World {
    async fn enter_deployment(&self, platform: &str, body: Value) -> Answer {
        let path = platform_path(platform, "/deployments");
        let entered = self.registry.post(&operator(), &path, body).await;
        self.tick(1);
        entered
    }

    /// Creates a deployment record of the production branch and returns its id.
    async fn create_deployment_id(&self, platform: &str, key: &str) -> String {
        let entered = self.enter_deployment(platform, body(key)).await;
        entered.expect(201).id()
    }

    async fn moved_to(&self, platform: &str, deployment: &str, status: &str) -> Answer {
        let path = one(platform, deployment);
        self.patch_record(&path, json!({ "status": status })).await
    }

    /// Deploys a site and returns the response status.
    async fn deploy_status(&self, platform: &str, key: &str) -> u16 {
        let path = platform_path(platform, "/deploy");
        let key = [("idempotency-key", key)];
        let deployed = self.deploy(&path, &operator(), &key).await;
        deployed.status.as_u16()
    }
}

#[tokio::test]
async fn a_deployment_record_starts_queued_and_moves_through_its_statuses() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let now = world.clock_seconds();
    let entered = world.enter_deployment(&platform, body("build-1")).await;
    let entered = entered.expect(201);
    let id = entered.id();
    let mut wanted = json!({
        "id": id, "idempotencyKey": "build-1", "platformId": platform, "userId": "ada", "cfDeploymentId": null,
        "projectName": "engines-site", "branch": "production", "url": null, "errorMessage": null, "status": "queued",
        "fileCount": null, "totalBytes": null, "startedAt": null, "completedAt": null, "createdAt": now,
        "updatedAt": now,
    });
    assert_eq!((&entered.json, entered.header("etag")), (&wanted, "\"1\""));
    let path = one(&platform, &id);
    let shown = world.registry.get(&owner(&platform), &path).await;
    assert_eq!((&shown.json, shown.header("etag")), (&wanted, "\"1\""));

    let started =
        json!({ "status": "uploading", "fileCount": 3, "totalBytes": 0, "url": "http://x.test" });
    for (field, value) in started.as_object().unwrap() {
        wanted[field] = value.clone();
    }
    wanted["startedAt"] = json!(now + 1);
    wanted["updatedAt"] = json!(now + 1);
    assert_eq!(
        world.patch_record(&path, started).await.expect(200).json,
        wanted
    );
    world.tick(1);
    let ended =
        json!({ "status": "active", "url": null, "fileCount": null, "cfDeploymentId": "d1" });
    for (field, value) in ended.as_object().unwrap() {
        wanted[field] = value.clone();
    }
    wanted["completedAt"] = json!(now + 2);
    wanted["updatedAt"] = json!(now + 2);
    let ended = world.patch_record(&path, ended).await.expect(200);
    assert_eq!((&ended.json, ended.header("etag")), (&wanted, "\"3\""));
    for action in ["created", "started", "activated"] {
        let entries = world.audit(&format!("deployment.{action}")).await;
        assert_eq!(entries.len(), 1, "{action}");
    }
}

#[tokio::test]
async fn a_deployment_only_moves_forward_and_never_changes_after_its_end() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let deploying = world.create_deployment_id(&platform, "forward").await;
    for (status, code) in [
        ("deploying", 200),
        ("deploying", 200),
        ("uploading", 409),
        ("queued", 409),
    ] {
        let moved = world.moved_to(&platform, &deploying, status).await;
        assert_eq!(moved.status, code, "{status}");
    }
    for end in ["active", "failure", "canceled"] {
        let id = world.create_deployment_id(&platform, end).await;
        let ended = world.moved_to(&platform, &id, end).await.expect(200);
        assert_eq!(ended.json["startedAt"], ended.json["completedAt"]);
        let path = one(&platform, &id);
        for change in [
            json!({ "status": "queued" }),
            json!({ "errorMessage": "x" }),
        ] {
            let late = world.patch_record(&path, change).await;
            late.expect_error(409, "INVALID_STATE");
        }
        // A request that changes nothing is accepted.
        let same = json!({ "status": end, "errorMessage": null });
        let same = world.patch_record(&path, same).await.expect(200);
        assert_eq!(same.json, ended.json);
    }
    let path = one(&platform, &deploying);
    for field in ["fileCount", "totalBytes"] {
        let negative = world.patch_record(&path, json!({ field: -1 })).await;
        let negative = negative.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(negative.issues(), [format!("{field}: too_small")]);
    }
}

#[tokio::test]
async fn a_repeated_key_returns_the_deployment_in_its_current_state() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let id = world.create_deployment_id(&platform, "build-1").await;
    let moved = world.moved_to(&platform, &id, "failure").await.expect(200);
    let again = world.enter_deployment(&platform, body("build-1")).await;
    let again = again.expect(200);
    assert_eq!((&again.json, again.header("etag")), (&moved.json, "\"2\""));
    for (field, other) in [("userId", "eve"), ("projectName", "x"), ("branch", "x")] {
        let mut reused = body("build-1");
        reused[field] = json!(other);
        let refused = world.enter_deployment(&platform, reused).await;
        refused.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
    }
    let other = world.create_platform("looms").await;
    assert_ne!(world.create_deployment_id(&other, "build-1").await, id);
    for branch in ["", "a b", "é", &"a".repeat(256)] {
        let mut bad = body("build-2");
        bad["branch"] = json!(branch);
        let refused = world.enter_deployment(&platform, bad).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn a_list_has_the_newest_deployments_up_to_its_exact_limit() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    for number in 0..21 {
        let id = world
            .create_deployment_id(&platform, &format!("k{number}"))
            .await;
        if number % 2 == 0 {
            let _ = world.moved_to(&platform, &id, "active").await.expect(200);
        }
    }
    let keys = async |query: &str| {
        let path = platform_path(&platform, &format!("/deployments?{query}"));
        let listed = world.get_record(&path).await.json;
        let listed = listed["deployments"].as_array().unwrap().iter();
        let key = |d: &Value| d["idempotencyKey"].as_str().unwrap().to_owned();
        listed.map(key).collect::<Vec<_>>()
    };
    let newest: Vec<String> = (1..21).rev().map(|n| format!("k{n}")).collect();
    assert_eq!(keys("").await, newest);
    assert_eq!(keys("limit=100").await.len(), 21);
    assert_eq!(keys("limit=2").await, ["k20", "k19"]);
    assert_eq!(keys("status=in_flight&limit=2").await, ["k19", "k17"]);
    assert_eq!(keys("idempotencyKey=k4").await, ["k4"]);
    assert_eq!(keys("idempotencyKey=k5&status=in_flight").await, ["k5"]);
    for none in ["idempotencyKey=k4&status=in_flight", "idempotencyKey=k"] {
        assert!(keys(none).await.is_empty(), "{none}");
    }
    for bad in [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=x",
        "limit=",
        "status=active",
    ] {
        let path = platform_path(&platform, &format!("/deployments?{bad}"));
        let refused = world.registry.get(&operator(), &path).await;
        refused.expect_error(400, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn an_unchanged_deployment_blocks_its_branch_for_fifteen_minutes() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let deployment = world.create_deployment_id(&platform, "build-1").await;
    world.tick(14 * 60);
    let moved = world.moved_to(&platform, &deployment, "uploading").await;
    let _ = moved.expect(200);
    world.tick(15 * 60);
    assert_eq!(world.deploy_status(&platform, "own").await, 409);
    world.tick(1);
    assert_eq!(world.deploy_status(&platform, "own").await, 202);
    // A deployment with a job blocks its branch until the job ends.
    world.tick(3600);
    assert_eq!(world.deploy_status(&platform, "next").await, 409);
}

#[tokio::test]
async fn cancelling_a_deployment_of_the_suite_unblocks_its_branch() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let deployment = world.deployment(&platform, &operator()).await;
    let called_off = world.moved_to(&platform, &deployment, "canceled").await;
    let called_off = called_off.expect(200);
    world.finish_jobs().await;
    let shown = world.get_record(&one(&platform, &deployment)).await;
    assert_eq!(shown.json, called_off.json);
    assert_eq!(world.deploy_status(&platform, "next").await, 202);
    world.finish_jobs().await;
    let newest = platform_path(&platform, "/deployments?idempotencyKey=next");
    let newest = world.get_record(&newest).await.json["deployments"][0].clone();
    assert_eq!(newest["status"], "active");
}

async fn concurrent_requests_with_one_key_create_one_deployment(world: World) {
    let platform = world.create_platform("engines").await;
    let requests = (0..4).map(|_| {
        let (api, path) = (
            world.registry.clone(),
            platform_path(&platform, "/deployments"),
        );
        async move { api.post(&operator(), &path, body("build-1")).await }
    });
    let answers = send_concurrently(requests).await;
    let mut statuses: Vec<u16> = answers.iter().map(|a| a.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 201]);
    assert!(answers.iter().all(|answer| answer.json == answers[0].json));
    let listed = world
        .get_record(&platform_path(&platform, "/deployments"))
        .await
        .json;
    assert_eq!(listed["deployments"], json!([answers[0].json]));
}

on_every_store! { concurrent_requests_with_one_key_create_one_deployment }
