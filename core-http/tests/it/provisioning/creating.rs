//! The job that creates the infrastructure of a platform.

use futures_util::future::join_all;
use serde_json::json;

use super::{DEPROVISION, PLATFORM, platform_body};
use crate::world::{World, on_every_store, operator, platform_path, resource_body};

#[tokio::test]
async fn provisioning_creates_six_resources_in_the_requested_environment() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let rows = [
        (None, "prod", 6),
        (Some("dev"), "dev", 12),
        (Some("stg"), "stg", 18),
        (Some("prod"), "prod", 18),
    ];
    for (asked, environment, resources) in rows {
        let mut body = platform_body(&platform);
        if let Some(asked) = asked {
            body["environment"] = json!(asked);
        }
        let id = world.queue_job(&operator(), PLATFORM, body).await;
        let job = world.job(&id).await;
        assert_eq!([&job["kind"], &job["status"]], ["platform", "QUEUED"]);
        assert_eq!(job["platformId"], *platform);
        assert_eq!(job["environment"], environment);
        let input = &job["input"];
        let told = [&input["planTier"], &input["billingEmail"]];
        assert_eq!(told, ["starter", "bills@example.org"]);
        world.run_jobs().await;
        let job = world.job(&id).await;
        assert_eq!(job["status"], "COMPLETED", "{job}");
        let steps = job["steps"].as_array().unwrap().iter();
        let steps: Vec<_> = steps.map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(steps, ["d1", "kv", "r2", "queue", "worker", "pages"]);
        assert_eq!(world.provider.names().len(), resources);
        let list = platform_path(&platform, "/resources?limit=1");
        assert_eq!(world.count(&list).await, resources as u64);
        let newest = world.registry.get(&operator(), &list).await.json["data"][0].clone();
        assert_eq!(newest["entityId"], job["entityId"]);
        assert_eq!(newest["status"], "active");
        world.tick(1);
    }
    world.deprovision(&platform, "dev").await;
    world.run_jobs().await;
    assert_eq!(world.provider.names().len(), 12);
    assert_eq!(
        world.count(&platform_path(&platform, "/resources")).await,
        12
    );
    let queued = world.audit("platform.provision_queued").await;
    assert_eq!(queued.len(), 4);
    assert_eq!(queued[0].actor_id, "service-key");
}

#[tokio::test]
async fn resources_belong_to_the_named_entity_or_to_the_platforms_own_tenant() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let owner_of = async |body| {
        let job = world.queue_job(&operator(), PLATFORM, body).await;
        world.tick(1);
        world.job(&job).await["entityId"].clone()
    };
    let own = owner_of(platform_body(&platform)).await;
    let named = world.tenant(&platform, "named").await;
    assert_eq!(
        owner_of(platform_body(&platform)).await,
        own,
        "one tenant for all"
    );
    let deleted = world.tenant(&platform, "deleted").await;
    let path = platform_path(&platform, &format!("/entities/{deleted}"));
    let _ = world.registry.delete(&operator(), &path).await.expect(200);
    let other = world.create_platform("looms").await;
    let foreign = world.tenant(&other, "foreign").await;
    let mut body = platform_body(&platform);
    body["defaultEntityId"] = json!(named);
    assert_eq!(owner_of(body.clone()).await, *named);
    for entity in ["nobody", &deleted, &foreign] {
        body["defaultEntityId"] = json!(entity);
        let body = body.clone();
        let refused = world.provisioning.post(&operator(), PLATFORM, body).await;
        refused.expect_error(404, "NOT_FOUND");
    }
    assert_eq!(world.jobs(&platform).await.len(), 3);
}

async fn without_an_idempotency_key_every_request_creates_a_job(world: World) {
    let platform = world.create_platform("engines").await;
    let (caller, body) = (operator(), platform_body(&platform));
    let requests = (0..8).map(|_| world.queue_job(&caller, PLATFORM, body.clone()));
    let mut jobs = join_all(requests).await;
    jobs.sort();
    jobs.dedup();
    assert_eq!(jobs.len(), 8);
}

on_every_store! { without_an_idempotency_key_every_request_creates_a_job }

#[tokio::test]
async fn a_deleted_platform_can_be_deprovisioned_but_not_provisioned() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world.delete_platform(&platform, "soft-delete").await;
    let ask = async |path| {
        let body = platform_body(&platform);
        world.provisioning.post(&operator(), path, body).await
    };
    let refused = ask(PLATFORM).await.expect_error(409, "INVALID_STATE");
    assert_eq!(refused.json["error"]["details"]["status"], "deleted");
    let _ = ask(DEPROVISION).await.expect(202);
    // During a hard delete a single job removes everything.
    world.delete_platform(&platform, "delete").await;
    for path in [PLATFORM, DEPROVISION] {
        ask(path).await.expect_error(409, "INVALID_STATE");
    }
    assert_eq!(world.jobs(&platform).await.len(), 2);
}

#[tokio::test]
async fn nothing_is_created_for_an_entity_or_platform_that_was_deleted_after_queueing() {
    let world = World::new();
    for (slug, gone) in [("engines", "entity"), ("looms", "platform")] {
        let platform = world.create_platform(slug).await;
        let mut body = platform_body(&platform);
        let entity = world.tenant(&platform, "tenant").await;
        body["defaultEntityId"] = json!(entity);
        let job = world.queue_job(&operator(), PLATFORM, body).await;
        let path = if gone == "entity" {
            platform_path(&platform, &format!("/entities/{entity}"))
        } else {
            platform_path(&platform, "")
        };
        let _ = world.registry.delete(&operator(), &path).await.expect(200);
        world.run_jobs().await;
        let error = world.job(&job).await["error"].clone();
        assert_eq!(error["code"], "PRECONDITION_FAILED");
        assert_eq!(error["message"], format!("the {gone} is gone"));
        assert!(world.provider.names().is_empty());
    }
}

#[tokio::test]
async fn a_resource_can_only_refer_to_jobs_of_its_own_platform() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let other = world.create_platform("looms").await;
    let own = world.provision(&platform).await;
    let foreign = world.provision(&other).await;
    let caller = operator();
    let entered = platform_path(&platform, &format!("/entities/{entity}/resources"));
    let resource = world.resource(&platform, &entity, "engines-kv").await;
    let resource = platform_path(&platform, &format!("/resources/{resource}"));
    let mut new = resource_body("engines-db");
    for (job, status) in [("nothing", 404), (&foreign, 404), (&own, 201)] {
        new["provisionJobId"] = json!(job);
        let answer = world.registry.post(&caller, &entered, new.clone());
        assert_eq!(answer.await.status, status, "{job}");
        let body = json!({ "provisionJobId": job });
        let answer = world.registry.patch(&caller, &resource, body).await;
        assert_eq!(answer.status == 200, status == 201, "{}", answer.json);
    }
}
