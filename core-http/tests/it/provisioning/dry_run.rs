//! Dry runs, which return the plan of a job without queueing it.

use serde_json::{Value, json};

use super::{DEPROVISION, PLATFORM, platform_body};
use crate::world::{Answer, World, on_every_store, operator, plain_member};

const ONBOARD: &str = "/api/v1/provision/onboard";

impl World {
    async fn dry(&self, path: &str, body: Value, headers: &[(&str, &str)]) -> Answer {
        let (caller, path) = (operator(), format!("{path}?dryRun=true"));
        let asked = self
            .provisioning
            .send(&caller, "POST", &path, headers, body);
        asked.await
    }
}

/// Returns the action, purpose and type of every resource in a plan.
fn resources(plan: &Answer) -> Vec<String> {
    let resources = plan.json["plan"]["resources"].as_array().unwrap().iter();
    let text = |resource: &Value, name: &str| resource[name].as_str().unwrap_or("?").to_owned();
    let told = |r| {
        let named = text(r, "cfName");
        let purpose = named.rsplit('-').next().unwrap_or_default();
        format!(
            "{} {purpose} {}",
            text(r, "action"),
            text(r, "resourceType")
        )
    };
    resources.map(told).collect()
}

const CREATED: [&str; 6] = [
    "create db d1",
    "create cache kv",
    "create assets r2",
    "create events queue",
    "create api worker",
    "create site pages",
];

async fn a_dry_run_returns_the_plan_of_a_job_and_queues_none(world: World) {
    let platform = world.create_platform("engines").await;
    let asked = world.dry(PLATFORM, platform_body(&platform), &[]).await;
    let plan = asked.expect(200);
    assert_eq!(plan.json["dryRun"], true);
    let steps = json!(["d1", "kv", "r2", "queue", "worker", "pages"].map(|s| json!({ "name": s })));
    let shown = &plan.json["plan"];
    assert_eq!(shown["steps"], steps);
    assert_eq!(
        [&shown["kind"], &shown["platformId"], &shown["environment"]],
        ["platform", &*platform, "prod"]
    );
    assert!(shown["entityId"].is_string(), "{shown}");
    assert_eq!(resources(&plan), CREATED);
    let marks = world.audit("job.planned").await;
    assert_eq!(marks.len(), 1);
    assert_eq!(marks[0].entity_id, "platform");
    assert!(world.jobs(&platform).await.is_empty());
    assert!(world.audit("platform.provision_queued").await.is_empty());
    // The tenant of the platform was not created either.
    let entities = crate::world::platform_path(&platform, "/entities");
    assert_eq!(world.count(&entities).await, 0);
    assert_eq!(world.next_job().await, None);
    // The job does what the plan says.
    world.provision(&platform).await;
    world.run_jobs().await;
    let again = world
        .dry(PLATFORM, platform_body(&platform), &[])
        .await
        .expect(200);
    let exists = CREATED.map(|told| told.replace("create", "exists"));
    assert_eq!(resources(&again), exists);
    let body = json!({ "platformId": platform, "environment": "prod" });
    let removal = world.dry(DEPROVISION, body.clone(), &[]).await.expect(200);
    let mut removed = CREATED.map(|told| told.replace("create", "remove"));
    removed.reverse();
    assert_eq!(resources(&removal), removed);
    assert_eq!(removal.json["plan"]["totalResources"], 6);
    let body = json!({ "platformId": platform, "environment": "dev" });
    let nothing = world.dry(DEPROVISION, body, &[]).await.expect(200);
    assert_eq!(nothing.json["plan"]["resources"], json!([]));
    assert_eq!(world.jobs(&platform).await.len(), 1);
}

async fn a_dry_run_of_an_onboarding_reserves_nothing(world: World) {
    let ada = world.sign_up("ada@example.org").await;
    let body = json!({
        "onboardingId": "o1", "platformName": "Looms", "slug": "looms", "userId": ada.user_id,
    });
    for _ in 0..2 {
        let plan = world.dry(ONBOARD, body.clone(), &[]).await.expect(200);
        assert_eq!(plan.json["plan"]["kind"], "onboard");
        assert_eq!(plan.json["plan"]["platformId"], Value::Null);
        let unnamed = CREATED.map(|told| {
            let words: Vec<&str> = told.split(' ').collect();
            format!("create ? {}", words[2])
        });
        assert_eq!(resources(&plan), unnamed);
    }
    world.queue_job(&operator(), ONBOARD, body).await;
    assert_eq!(world.audit("job.planned").await.len(), 2);
}

async fn a_dry_run_is_replayed_for_its_key_and_audited_once(world: World) {
    let platform = world.create_platform("engines").await;
    let key = [("idempotency-key", "once")];
    let first = world
        .dry(PLATFORM, platform_body(&platform), &key)
        .await
        .expect(200);
    world.provision(&platform).await;
    world.run_jobs().await;
    let again = world
        .dry(PLATFORM, platform_body(&platform), &key)
        .await
        .expect(200);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.json, first.json);
    assert_eq!(world.audit("job.planned").await.len(), 1);
    // The request that queues the job is a different one, so it cannot reuse the key.
    let (caller, body) = (operator(), platform_body(&platform));
    let wet = world
        .provisioning
        .send(&caller, "POST", PLATFORM, &key, body);
    wet.await.expect_error(422, "IDEMPOTENCY_KEY_REUSED");
}

on_every_store! {
    a_dry_run_returns_the_plan_of_a_job_and_queues_none,
    a_dry_run_of_an_onboarding_reserves_nothing,
    a_dry_run_is_replayed_for_its_key_and_audited_once,
}

#[tokio::test]
async fn a_dry_run_is_refused_like_the_real_request() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let mut nobody = platform_body(&platform);
    nobody["defaultEntityId"] = json!("nobody");
    world
        .dry(PLATFORM, nobody, &[])
        .await
        .expect_error(404, "NOT_FOUND");
    let path = format!("{DEPROVISION}?dryRun=true");
    let body = json!({ "platformId": platform });
    let member = plain_member(&platform);
    let asked = world.provisioning.post(&member, &path, body.clone()).await;
    asked.expect_error(403, "FORBIDDEN");
    let path = format!("{DEPROVISION}?dryRun=perhaps");
    let asked = world
        .provisioning
        .post(&operator(), &path, body.clone())
        .await;
    asked.expect_error(400, "VALIDATION_ERROR");
    world.delete_platform(&platform, "delete").await;
    world
        .dry(DEPROVISION, body, &[])
        .await
        .expect_error(409, "INVALID_STATE");
    assert!(world.audit("job.planned").await.is_empty());
}
