//! Activation, deactivation and reactivation of stacks and their apps.

use std::collections::BTreeSet;

use core_domain::use_case::provisioning::NoSupervisor;
use serde_json::{Value, json};

use crate::world::{JobCommand, World, on_every_store, operator, owner, platform_path};

pub(super) const ACTIVATE: &str = "/api/v1/provision/stack/activate";
pub(super) const DEACTIVATE: &str = "/api/v1/provision/stack/deactivate";
pub(super) const CREATE_APP: &str = "/api/v1/provision/app/create";

on_every_store! {
    a_stack_is_activated_deactivated_without_losing_data_and_reactivated,
    activations_of_one_template_share_only_features_until_the_last_ends,
    repeated_requests_create_an_app_once,
}

/// A world with a platform, and the template `shop` in version 1.0.0.
pub(super) struct Harness {
    pub(super) world: World,
    pub(super) platform: String,
}

impl Harness {
    pub(super) async fn over(world: World) -> Self {
        let platform = world.create_platform("engines").await;
        let harness = Self { world, platform };
        let body = json!({ "name": "shop", "displayName": "Shop", "description": "A shop" });
        let stacks = &harness.world.stacks;
        let created = stacks.post(&operator(), "/api/v1/stacks", body).await;
        let _ = created.expect(201);
        harness.publish("1.0.0", definition()).await;
        harness
    }

    pub(super) async fn publish(&self, version: &str, definition: Value) {
        let body = json!({
            "version": version, "stackDefinition": definition, "coreSdkVersion": "1.0.0",
        });
        let path = "/api/v1/stacks/shop/versions";
        let published = self.world.stacks.post(&operator(), path, body).await;
        let _ = published.expect(201);
    }

    pub(super) fn activation_body(&self, version: &str) -> Value {
        json!({ "platformId": self.platform, "stackId": "shop", "stackVersion": version })
    }

    /// Requests the activation of a version. Returns the ids of the job and of the workspace stack.
    pub(super) async fn activate(&self, version: &str) -> (String, String) {
        let (caller, body) = (owner(&self.platform), self.activation_body(version));
        let job = self.world.queue_job(&caller, ACTIVATE, body).await;
        self.world.tick(1);
        let shown = self.world.job(&job).await;
        (job, text(&shown["input"]["stackInstanceId"]))
    }

    pub(super) async fn deactivate(&self, stack: &str, delete_data: bool) -> String {
        let body = json!({
            "platformId": self.platform, "stackInstanceId": stack, "deleteData": delete_data,
        });
        let caller = owner(&self.platform);
        let job = self.world.queue_job(&caller, DEACTIVATE, body).await;
        self.world.tick(1);
        job
    }

    pub(super) fn app(&self, stack: &str, app_type: &str) -> Value {
        json!({
            "platformId": self.platform, "stackId": stack, "appName": "admin",
            "appType": app_type, "withDatabase": true,
        })
    }

    pub(super) async fn status(&self, stack: &str) -> String {
        let path = platform_path(&self.platform, &format!("/stacks/{stack}"));
        self.world.get_record(&path).await.text("status").to_owned()
    }

    /// Returns the type, service name and status of the resource records, sorted.
    pub(super) async fn resource_records(&self) -> Vec<String> {
        let listed = self
            .world
            .get_record(&platform_path(&self.platform, "/resources"))
            .await;
        let entries = listed.json["data"].as_array().unwrap().iter();
        let told = entries.map(|entry| {
            let fields = ["resourceType", "serviceName", "status"];
            fields.map(|field| text(&entry[field])).join(" ")
        });
        let mut told: Vec<String> = told.collect();
        told.sort();
        told
    }

    pub(super) fn objects(&self) -> BTreeSet<String> {
        self.world.provider.names().into_iter().collect()
    }

    async fn steps(&self, job: &str) -> Vec<String> {
        let job = self.world.job(job).await;
        let steps = job["steps"].as_array().unwrap().iter();
        steps.map(|step| text(&step["name"])).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn definition() -> Value {
    let bound = |name: &str, to: &str| json!([{ "name": name, "resource": to }]);
    json!({
        "resources": [
            { "name": "site", "type": "pages", "bindings": bound("API", "front") },
            { "name": "front", "type": "worker", "bindings": bound("BACK", "back") },
            { "name": "back", "type": "worker", "bindings": bound("DB", "db"), "modules": { "b.js": "" }, "mainModule": "b.js" },
            { "name": "db", "type": "d1" },
            { "name": "only-dev", "type": "kv", "environment": "dev" },
        ],
        "features": [{ "id": "search", "version": "1" }],
        "apps": [{ "name": "help", "type": "app" }],
        "dns": ["what nobody knows"],
    })
}

async fn a_stack_is_activated_deactivated_without_losing_data_and_reactivated(world: World) {
    let harness = Harness::over(world).await;
    let world = &harness.world;
    let (job, stack) = harness.activate("1.0.0").await;
    let steps = [
        "d1:db",
        "worker:back",
        "worker:front",
        "pages:site",
        "feature:search",
        "pages:help",
    ];
    assert_eq!(harness.steps(&job).await, steps);
    assert_eq!(harness.status(&stack).await, "pending");
    let made = [
        "d1 db",
        "pages help",
        "pages site",
        "worker back",
        "worker front",
    ];
    let pending = made.map(|part| format!("{part} pending"));
    assert_eq!(harness.resource_records().await, pending);
    world.finish_jobs().await;
    let shown = world.job(&job).await;
    assert_eq!(shown["status"], "COMPLETED", "{shown}");
    assert_eq!(shown["input"]["deprecated"], false);
    assert_eq!(harness.status(&stack).await, "active");
    let mut active = made.map(|part| format!("{part} active")).to_vec();
    active.push("worker search active".to_owned());
    assert_eq!(harness.resource_records().await, active);
    assert_eq!(harness.objects().len(), 6);
    let path = platform_path(&harness.platform, &format!("/stacks/{stack}"));
    let shown = world.get_record(&path).await;
    let template = world.stacks.get(&operator(), "/api/v1/stacks/shop").await;
    assert_eq!(shown.text("name"), "shop");
    assert_eq!(shown.json["templateId"], template.json["template"]["id"]);

    let before = harness.objects();
    let job = harness.deactivate(&stack, false).await;
    assert_eq!(harness.steps(&job).await, ["pages", "features", "worker"]);
    assert_eq!(harness.status(&stack).await, "deactivating");
    world.finish_jobs().await;
    assert_eq!(harness.status(&stack).await, "inactive");
    assert_eq!(harness.resource_records().await, ["d1 db active"]);
    let kept = harness.objects();
    assert!(kept.len() == 1 && before.is_superset(&kept), "{kept:?}");

    // The reactivated stack gets its data back, also in another version.
    let smaller = json!({ "resources": [{ "name": "db", "type": "d1" }, { "name": "back", "type": "worker" }] });
    harness.publish("2.0.0", smaller).await;
    let (_, again) = harness.activate("2.0.0").await;
    assert_eq!(again, stack);
    world.finish_jobs().await;
    assert_eq!(harness.status(&stack).await, "active");
    assert!(harness.objects().len() == 2 && before.is_superset(&harness.objects()));
    let job = harness.deactivate(&stack, true).await;
    let all = ["pages", "features", "worker", "queue", "r2", "kv", "d1"];
    assert_eq!(harness.steps(&job).await, all);
    world.finish_jobs().await;
    assert!(harness.objects().is_empty());
    assert!(harness.resource_records().await.is_empty());
    // The data of an inactive stack can be deleted as well; here there is none.
    let job = harness.deactivate(&stack, true).await;
    world.finish_jobs().await;
    assert_eq!(world.job(&job).await["status"], "COMPLETED");
    assert_eq!(harness.status(&stack).await, "inactive");
}

async fn activations_of_one_template_share_only_features_until_the_last_ends(world: World) {
    let harness = Harness::over(world).await;
    let world = &harness.world;
    let (_, first) = harness.activate("1.0.0").await;
    let (_, second) = harness.activate("1.0.0").await;
    assert_ne!(first, second);
    world.finish_jobs().await;
    for stack in [&first, &second] {
        assert_eq!(harness.status(stack).await, "active");
    }
    let listed = world
        .get_record(&platform_path(&harness.platform, "/stacks"))
        .await;
    let names: BTreeSet<&str> = listed.each("name").into_iter().collect();
    assert!(names.len() == 2 && names.contains("shop"), "{names:?}");
    assert_eq!(harness.objects().len(), 11);
    let has_search = async || {
        let entries = harness.resource_records().await;
        entries.contains(&"worker search active".to_owned())
    };
    for (stack, objects, searches) in [(&first, 6, true), (&second, 0, false)] {
        harness.deactivate(stack, true).await;
        world.finish_jobs().await;
        assert_eq!(harness.status(stack).await, "inactive");
        assert_eq!(harness.objects().len(), objects);
        assert_eq!(has_search().await, searches);
    }
}

async fn repeated_requests_create_an_app_once(world: World) {
    let harness = Harness::over(world).await;
    let world = &harness.world;
    let tenant = world.tenant(&harness.platform, "tenant").await;
    let stack = world
        .workspace_stack(&harness.platform, &tenant, "own")
        .await;
    let caller = owner(&harness.platform);
    for app_type in ["svc", "fullstack", "fullstack"] {
        let body = harness.app(&stack, app_type);
        let job = world.queue_job(&caller, CREATE_APP, body).await;
        assert_eq!(world.job(&job).await["entityId"], tenant);
    }
    world.run_jobs().await;
    let entries = [
        "d1 admin-db active",
        "pages admin active",
        "worker admin-svc active",
    ];
    assert_eq!(harness.resource_records().await, entries);
    assert_eq!(harness.objects().len(), 3);
    let jobs = world.jobs(&harness.platform).await;
    assert!(jobs.iter().all(|job| job["status"] == "COMPLETED"));
    assert_eq!(world.audit("app.creation_queued").await.len(), 3);
    // Apps are removed with their stack.
    harness.deactivate(&stack, false).await;
    world.run_jobs().await;
    assert_eq!(harness.resource_records().await, ["d1 admin-db active"]);
}

#[tokio::test]
async fn a_stack_that_cannot_be_created_fails_and_completes_when_its_job_is_retried() {
    let harness = Harness::over(World::new()).await;
    let world = &harness.world;
    let (job, stack) = harness.activate("1.0.0").await;
    world.provider.set_failing(true);
    world.finish_jobs().await;
    assert_eq!(harness.status(&stack).await, "failed");
    let entries = harness.resource_records().await;
    assert!(entries.len() == 5 && entries.iter().all(|entry| entry.ends_with("failed")));
    assert!(world.job(&job).await["dlqEntryId"].is_string());
    world.provider.set_failing(false);
    world.operate(&job, JobCommand::Retry).await;
    assert_eq!(harness.status(&stack).await, "pending");
    world.finish_jobs().await;
    assert_eq!(harness.status(&stack).await, "active");
    assert_eq!(harness.objects().len(), 6);
}

#[tokio::test]
async fn a_failed_feature_fails_its_stack_and_is_retried_with_it() {
    let harness = Harness::over(World::new()).await;
    let world = &harness.world;
    let (job, stack) = harness.activate("1.0.0").await;
    let _ = world.worker().run_one(&NoSupervisor).await.unwrap();
    let of_feature = |jobs: Vec<Value>| {
        let mut jobs = jobs.into_iter();
        text(&jobs.find(|job| job["kind"] == "feature.activate").unwrap()["jobId"])
    };
    // The parts before the feature exist; the job waits for the feature's job.
    assert_eq!(world.job(&job).await["status"], "WAITING");
    let child = of_feature(world.jobs(&harness.platform).await);
    assert_eq!(world.job(&child).await["parentJobId"], *job);
    world.operate(&child, JobCommand::Cancel).await;
    world.finish_jobs().await;
    let failed = world.job(&job).await;
    assert_eq!(failed["error"]["code"], "FEATURE_JOB_FAILED", "{failed}");
    assert_eq!(harness.status(&stack).await, "failed");
    world.operate(&job, JobCommand::Retry).await;
    world.finish_jobs().await;
    assert_eq!(world.job(&job).await["status"], "COMPLETED");
    assert_eq!(harness.status(&stack).await, "active");
}

#[tokio::test]
async fn a_stack_ends_with_its_environment_and_a_pending_activation_fails() {
    let harness = Harness::over(World::new()).await;
    let world = &harness.world;
    let (job, stack) = harness.activate("1.0.0").await;
    world.deprovision(&harness.platform, "dev").await;
    world.run_jobs().await;
    assert_ne!(harness.status(&stack).await, "inactive");
    world.finish_jobs().await;
    let (late, _) = harness.activate("1.0.0").await;
    world.deprovision(&harness.platform, "prod").await;
    world.finish_jobs().await;
    assert_eq!(world.job(&job).await["status"], "COMPLETED");
    let late = world.job(&late).await;
    assert_eq!(late["error"]["code"], "PRECONDITION_FAILED", "{late}");
    assert_eq!(harness.status(&stack).await, "inactive");
    assert!(harness.objects().is_empty() && harness.resource_records().await.is_empty());
}
