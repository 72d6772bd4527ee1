//! Upgrades of the auth workers of platforms.

use core_domain::kernel::Secret;
use core_domain::port::{Infrastructure, ResourceRef, SetSecrets};
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use super::platform_body;
use crate::world::{World, operator, platform_path};

const UPGRADE: &str = "/api/v1/provision/auth/upgrade";

impl World {
    /// Requests an upgrade and returns the id of its job.
    async fn upgrade_auth(&self, platform: &str) -> String {
        let body = json!({ "platformId": platform });
        let asked = self.provisioning.post(&operator(), UPGRADE, body).await;
        let asked = asked.expect(202);
        let job = asked.text("jobId").to_owned();
        assert_eq!(asked.json, json!({ "jobId": job, "platformId": platform }));
        self.tick(1);
        job
    }

    /// Returns the auth workers in the registry, newest first.
    async fn auth_workers(&self, platform: &str) -> Vec<Value> {
        let resources = self
            .get_record(&platform_path(platform, "/resources"))
            .await;
        let resources = resources.json["data"].as_array().unwrap().clone();
        let auth = |resource: &Value| resource["serviceName"] == "auth";
        resources.into_iter().filter(auth).collect()
    }
}

#[tokio::test]
async fn an_upgrade_creates_or_replaces_the_auth_worker_of_every_environment_in_use() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let body = json!({ "platformId": platform });
    let refused = world
        .provisioning
        .post(&operator(), UPGRADE, body.clone())
        .await;
    refused.expect_error(409, "CONFLICT");
    for environment in ["dev", "prod"] {
        let mut body = platform_body(&platform);
        body["environment"] = json!(environment);
        world.queue_job(&operator(), super::PLATFORM, body).await;
    }
    world.run_jobs().await;
    let dry = format!("{UPGRADE}?dryRun=true");
    let plan = async || {
        let plan = world
            .provisioning
            .post(&operator(), &dry, body.clone())
            .await
            .expect(200);
        let planned = plan.json["plan"]["resources"].as_array().unwrap().clone();
        planned
            .iter()
            .map(|one| one["action"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(plan().await, ["create", "create"]);
    let job = world.upgrade_auth(&platform).await;
    world.run_jobs().await;
    let done = world.job(&job).await;
    assert_eq!(done["status"], "COMPLETED", "{done}");
    let steps = [0, 1].map(|at: usize| done["steps"][at]["name"].clone());
    assert_eq!(steps, ["worker:dev", "worker:prod"]);
    let workers = world.auth_workers(&platform).await;
    assert_eq!(workers.len(), 2);
    for worker in &workers {
        let environment = worker["environment"].as_str().unwrap();
        let name = worker["cfName"].as_str().unwrap();
        assert!(name.starts_with("engines-") && name.ends_with(&format!("-{environment}-auth")));
        let told = [
            &worker["status"],
            &worker["config"],
            &worker["resourceType"],
        ];
        assert_eq!(
            told,
            [
                &json!("active"),
                &json!({ "authVersion": 1 }),
                &json!("worker")
            ]
        );
        assert!(world.provider.names().contains(&name.to_owned()));
    }
    // A current worker stays unchanged. An outdated one is replaced and keeps its secrets and other settings.
    assert_eq!(plan().await, ["exists", "exists"]);
    let worker = ResourceRef {
        resource_type: ResourceType::Worker,
        name: workers[0]["cfName"].as_str().unwrap().to_owned(),
    };
    let secrets = SetSecrets {
        resource: worker.clone(),
        owner: platform.clone(),
        secrets: vec![("SIGNING_KEY".to_owned(), Secret::new("s"))],
        deleted: Vec::new(),
    };
    world.provider.set_secrets(&secrets).await.unwrap();
    let older = json!({ "config": { "authVersion": 0, "theme": "dark" } });
    let path = format!("/resources/{}", workers[0]["id"].as_str().unwrap());
    let _ = world
        .patch_record(&platform_path(&platform, &path), older)
        .await
        .expect(200);
    assert!(plan().await.contains(&"update".to_owned()));
    world.upgrade_auth(&platform).await;
    world.run_jobs().await;
    let replaced = world.get_record(&platform_path(&platform, &path)).await;
    assert_eq!(
        replaced.json["config"],
        json!({ "authVersion": 1, "theme": "dark" })
    );
    assert_eq!(
        world.provider.secret_names(&worker).await.unwrap(),
        ["SIGNING_KEY"]
    );
    assert_eq!(world.auth_workers(&platform).await.len(), 2);
    world.deprovision(&platform, "prod").await;
    world.run_jobs().await;
    assert_eq!(world.auth_workers(&platform).await.len(), 1);
    assert_eq!(world.provider.names().len(), 7);
}

#[tokio::test]
async fn after_any_store_failure_an_auth_worker_exists_once_and_is_removed_with_its_platform() {
    for call in 1.. {
        let (world, store) = World::faulty();
        let platform = world.create_platform("engines").await;
        world.provision(&platform).await;
        world.run_jobs().await;
        let job = world.upgrade_auth(&platform).await;
        let failed = world.run_one_failing(&store, call).await;
        // In every second round the job stays unfinished: the removal must also find objects without a record.
        let also_unfinished = call % 2 == 0;
        if !also_unfinished {
            world.advance_and_run(600).await;
            world.advance_and_run(600).await;
            assert_eq!(world.job(&job).await["status"], "COMPLETED", "{call}");
            assert_eq!(world.auth_workers(&platform).await.len(), 1, "{call}");
            assert_eq!(world.provider.names().len(), 7, "{call}");
        }
        world.delete_platform(&platform, "delete").await;
        world.advance_and_run(600).await;
        world.advance_and_run(600).await;
        assert!(world.provider.names().is_empty(), "{call}");
        if !failed {
            assert!(call > 15, "a run has only {call} calls");
            return;
        }
    }
}
