//! Comparison and repair of the registry's records and the provider's objects.

use core_domain::port::{HostnameState, Infrastructure, ResourceRef};
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use crate::world::{World, any_target, operator, platform_path};

const RECONCILE: &str = "/api/v1/provision/platform/reconcile";
const HOSTNAME: &str = "shop.example.com";

/// The URL of `engines-db` at the provider.
const URL: &str = "http://engines-db.test";

impl World {
    /// Reconciles a platform and returns the output of the job's steps.
    async fn reconcile(&self, platform: &str, mut wanted: Value) -> Value {
        wanted["platformId"] = json!(platform);
        let job = self.queue_job(&operator(), RECONCILE, wanted).await;
        self.run_jobs().await;
        let done = self.job(&job).await;
        assert_eq!(done["status"], "COMPLETED", "{done}");
        self.tick(1);
        done["output"].clone()
    }

    /// Returns the resource record with this name, including deleted ones.
    async fn resource_record(&self, platform: &str, name: &str) -> Value {
        let path = platform_path(platform, "/resources?limit=100&includeDeleted=true");
        let all = self.get_record(&path).await.json["data"]
            .as_array()
            .unwrap()
            .clone();
        all.into_iter()
            .find(|entry| entry["cfName"] == name)
            .unwrap_or_default()
    }

    async fn remove_object(&self, resource_type: ResourceType, name: &str, owner: &str) {
        let resource = ResourceRef {
            resource_type,
            name: name.to_owned(),
        };
        self.provider.remove(&resource, owner).await.unwrap();
    }
}

/// Creates a platform with its six provisioned resources, and `engines-db`, which is recorded and created by hand.
async fn platform(world: &World) -> String {
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    let resource = world.resource(&platform, &entity, "engines-db").await;
    world
        .create_object(ResourceType::D1, "engines-db", &platform)
        .await;
    let path = platform_path(&platform, &format!("/resources/{resource}"));
    for status in ["provisioning", "active"] {
        let body = json!({ "status": status, "cfId": "id-of-engines-db", "cfUrl": URL });
        let _ = world.patch_record(&path, body).await.expect(200);
    }
    world.provision(&platform).await;
    world.run_jobs().await;
    world.tick(1);
    platform
}

/// Returns the name of a provisioned resource that ends with `end`.
fn provisioned_name(world: &World, end: &str) -> String {
    let names = world.provider.names();
    names.into_iter().find(|name| name.ends_with(end)).unwrap()
}

fn comparison_result(output: &Value, step: &str) -> [Value; 4] {
    let found = &output[step];
    ["checked", "missing", "orphans", "changed"].map(|field| found[field].clone())
}

#[tokio::test]
async fn a_comparison_lists_the_differences_and_changes_nothing() {
    let world = World::new();
    let platform = platform(&world).await;
    let (db, api) = (
        provisioned_name(&world, "-prod-db"),
        provisioned_name(&world, "-prod-api"),
    );
    world.remove_object(ResourceType::D1, &db, &platform).await;
    world
        .create_object(ResourceType::D1, "by-hand", &platform)
        .await;
    world
        .create_object(ResourceType::D1, "of-others", "somebody-else")
        .await;
    let entry = world.resource_record(&platform, &api).await;
    let path = platform_path(
        &platform,
        &format!("/resources/{}", entry["id"].as_str().unwrap()),
    );
    let moved = json!({ "cfUrl": "https://moved.test" });
    let _ = world.patch_record(&path, moved).await.expect(200);
    let changes = world.audit("resource.updated").await.len();
    let output = world.reconcile(&platform, json!({})).await;
    let none = json!([]);
    let d1 = [json!(2), json!([db]), json!(["by-hand"]), none.clone()];
    assert_eq!(comparison_result(&output, "d1"), d1);
    let worker = [json!(1), none.clone(), none.clone(), json!([api])];
    assert_eq!(comparison_result(&output, "worker"), worker);
    for same in ["kv", "r2", "queue", "pages"] {
        assert_eq!(
            comparison_result(&output, same),
            [json!(1), none.clone(), none.clone(), none.clone()]
        );
    }
    let counts = json!({ "missing": 1, "orphans": 1, "changed": 0, "repaired": 0 });
    assert_eq!(output["d1"]["counts"], counts);
    assert_eq!(world.audit("resource.updated").await.len(), changes);
    // Another environment has nothing to compare.
    let output = world
        .reconcile(&platform, json!({ "environment": "dev" }))
        .await;
    assert_eq!(
        comparison_result(&output, "d1"),
        [json!(0), none.clone(), none.clone(), none]
    );
}

#[tokio::test]
async fn a_repair_recreates_provisioned_objects_and_marks_other_missing_ones_as_failed() {
    let world = World::new();
    let platform = platform(&world).await;
    let api = provisioned_name(&world, "-prod-api");
    world
        .remove_object(ResourceType::Worker, &api, &platform)
        .await;
    world
        .remove_object(ResourceType::D1, "engines-db", &platform)
        .await;
    // An object that a job has created but not recorded.
    let dev = provisioned_name(&world, "-prod-cache").replace("-prod-", "-dev-");
    world.create_object(ResourceType::Kv, &dev, &platform).await;
    let output = world.reconcile(&platform, json!({ "repair": true })).await;
    let done = |step: &str| {
        let repaired = output[step]["repaired"].as_array().unwrap().iter();
        let told = |r: &Value| ["name", "action"].map(|field| r[field].clone());
        repaired.map(told).collect::<Vec<_>>()
    };
    assert_eq!(done("worker"), [[json!(api), json!("created")]]);
    assert_eq!(done("d1"), [[json!("engines-db"), json!("failed")]]);
    assert_eq!(done("kv"), [[json!(dev), json!("entered")]]);
    assert!(world.provider.names().contains(&api));
    let lost = world.resource_record(&platform, "engines-db").await;
    assert_eq!(lost["status"], "failed");
    let entered = world.resource_record(&platform, &dev).await;
    let told = ["status", "environment", "serviceName"].map(|f| entered[f].clone());
    assert_eq!(told, ["active", "dev", "cache"]);
    assert_eq!(world.audit("platform.repaired").await.len(), 3);
    // Clients still cannot set an active resource to `failed`.
    let path = platform_path(
        &platform,
        &format!("/resources/{}", entered["id"].as_str().unwrap()),
    );
    let said = world
        .patch_record(&path, json!({ "status": "failed" }))
        .await;
    let refused = said.expect_error(409, "INVALID_STATE");
    let allowed = &refused.json["error"]["details"]["allowedFrom"];
    assert_eq!(*allowed, json!(["provisioning"]));
    let again = world.reconcile(&platform, json!({ "repair": true })).await;
    for step in ["d1", "kv", "worker"] {
        assert_eq!(again[step]["counts"]["repaired"], 0, "{step}");
    }
}

#[tokio::test]
async fn objects_of_deleted_records_are_removed_and_data_only_on_request() {
    let world = World::new();
    let platform = platform(&world).await;
    world
        .create_object(ResourceType::Worker, "unknown", &platform)
        .await;
    let gone = ["-prod-api", "-prod-cache"].map(|end| provisioned_name(&world, end));
    for name in &gone {
        let entry = world.resource_record(&platform, name).await;
        let path = format!("/resources/{}", entry["id"].as_str().unwrap());
        world.delete_record(&platform_path(&platform, &path)).await;
    }
    let exists = |name: &str| world.provider.names().contains(&name.to_owned());
    world.reconcile(&platform, json!({})).await;
    assert!(exists(&gone[0]) && exists(&gone[1]));
    world.reconcile(&platform, json!({ "repair": true })).await;
    assert!(!exists(&gone[0]) && exists(&gone[1]));
    let wanted = json!({ "repair": true, "deleteData": true });
    let output = world.reconcile(&platform, wanted).await;
    assert!(!exists(&gone[1]));
    // An object of unknown purpose is kept.
    assert!(exists("unknown"));
    assert_eq!(output["worker"]["orphans"], json!(["unknown"]));
}

#[tokio::test]
async fn a_repair_serves_missing_hostnames_updates_changed_ones_and_removes_orphans() {
    let target = &any_target();
    let world = World::new();
    let (platform, record) = world.platform_with_dns("engines").await;
    let domain = world.domain(&platform, &record, HOSTNAME).await;
    let add = json!({
        "platformId": platform, "customHostname": HOSTNAME, "targetDnsRecordId": record,
    });
    world
        .queue_job(&operator(), "/api/v1/provision/domain/add", add)
        .await;
    world.create_records(&platform, &domain).await;
    world.run_jobs().await;
    let compare = async |repair: bool| {
        let output = world
            .reconcile(&platform, json!({ "repair": repair }))
            .await;
        let [_, missing, orphans, changed] = comparison_result(&output, "hostnames");
        [missing, orphans, changed].map(|names| names.as_array().unwrap().len())
    };
    let served = async || {
        let served = world
            .provider
            .get_served_hostname(HOSTNAME, &platform, target)
            .await;
        served.unwrap().is_some()
    };
    assert_eq!(compare(true).await, [0, 0, 0]);
    world
        .provider
        .stop_serving(HOSTNAME, &platform, target)
        .await
        .unwrap();
    assert_eq!(compare(false).await, [1, 0, 0]);
    assert!(!served().await);
    assert_eq!(compare(true).await, [1, 0, 0]);
    assert!(served().await);
    world
        .provider
        .set_hostname_state(HostnameState::Pending("renewal".to_owned()));
    assert_eq!(compare(true).await, [0, 0, 1]);
    let shown = world.find_listed_domain(&platform, &domain).await;
    let told = ["status", "sslStatus"].map(|field| shown[field].clone());
    assert_eq!(told, ["active", "pending_issuance"]);
    let path = platform_path(&platform, &format!("/domains/{domain}"));
    assert_eq!(world.registry.delete(&operator(), &path).await.status, 204);
    let removal = world.jobs(&platform).await[0]["jobId"].clone();
    world
        .operate(removal.as_str().unwrap(), crate::world::JobCommand::Cancel)
        .await;
    assert_eq!(compare(true).await, [0, 1, 0]);
    assert!(!served().await);
    assert_eq!(compare(true).await, [0, 0, 0]);
}

#[tokio::test]
async fn a_report_has_a_size_limit_and_a_large_repair_runs_to_completion() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    for number in 0..300 {
        let name = format!("an-object-that-nobody-entered-with-a-long-name-{number:03}");
        world
            .create_object(ResourceType::D1, &name, &platform)
            .await;
    }
    for number in 0..60 {
        let resource = world
            .resource(&platform, &entity, &format!("lost-{number:02}"))
            .await;
        let path = platform_path(&platform, &format!("/resources/{resource}"));
        for status in ["provisioning", "active"] {
            let _ = world
                .patch_record(&path, json!({ "status": status }))
                .await
                .expect(200);
        }
    }
    let output = world.reconcile(&platform, json!({ "repair": true })).await;
    let d1 = &output["d1"];
    assert!(d1.to_string().len() < 64 * 1024);
    assert_eq!(d1["counts"]["orphans"], 300);
    assert_eq!(d1["orphans"].as_array().unwrap().len(), 100);
    let lost = world
        .get_record(&platform_path(&platform, "/resources?limit=100"))
        .await;
    assert!(lost.each("status").iter().all(|status| *status == "failed"));
    let repairs = world.audit("platform.repaired").await;
    let counted = repairs.iter().map(|entry| {
        entry.after.as_ref().unwrap().value()["repaired"]
            .as_array()
            .unwrap()
            .len()
    });
    assert_eq!(counted.collect::<Vec<_>>().iter().sum::<usize>(), 60);
}

#[tokio::test]
async fn registry_and_provider_agree_after_a_repair_that_a_failing_store_interrupted() {
    for call in (1..).step_by(5) {
        let (world, store) = World::faulty();
        let platform = platform(&world).await;
        let api = provisioned_name(&world, "-prod-api");
        world
            .remove_object(ResourceType::Worker, &api, &platform)
            .await;
        world
            .remove_object(ResourceType::D1, "engines-db", &platform)
            .await;
        let body = json!({ "platformId": platform, "repair": true });
        let job = world.queue_job(&operator(), RECONCILE, body).await;
        let failed = world.run_one_failing(&store, call).await;
        for _ in 0..2 {
            world.tick(600);
            world.run_timers().await;
            world.run_jobs().await;
        }
        assert_eq!(world.job(&job).await["status"], "COMPLETED", "{call}");
        assert!(world.provider.names().contains(&api), "{call}");
        assert_eq!(
            world.resource_record(&platform, "engines-db").await["status"],
            "failed",
            "{call}"
        );
        let again = world.reconcile(&platform, json!({})).await;
        for step in ["d1", "kv", "r2", "queue", "worker", "pages"] {
            let counts = json!({ "missing": 0, "orphans": 0, "changed": 0, "repaired": 0 });
            assert_eq!(again[step]["counts"], counts, "{call} {step}");
        }
        if !failed {
            assert!(call > 60, "a run has only {call} calls");
            return;
        }
    }
}
