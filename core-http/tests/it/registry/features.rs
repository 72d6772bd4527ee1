//! Features of entities: their jobs, their refusals, and the manifest of an entity.

use core_domain::kernel::{EntityId, Environment, PlatformId, Slug};
use core_domain::port::{Infrastructure, ObjectRequest, ResourceRef};
use core_domain::registry::{FeatureId, ResourceType, feature_worker_name};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::world::{Answer, JobCommand, World, on_every_store, operator, owner, platform_path};

/// A world with an entity of a platform.
struct Harness {
    world: World,
    platform: String,
    entity: String,
}

impl Harness {
    async fn over(world: World) -> Self {
        let platform = world.create_platform("engines").await;
        let entity = world.tenant(&platform, "tenant").await;
        Self {
            world,
            platform,
            entity,
        }
    }

    async fn new() -> Self {
        Self::over(World::new()).await
    }

    fn path(&self, rest: &str) -> String {
        platform_path(&self.platform, &format!("/entities/{}{rest}", self.entity))
    }

    async fn post(&self, rest: &str, body: Value) -> Answer {
        let path = self.path(&format!("/features/{rest}"));
        let caller = owner(&self.platform);
        let answer = self.world.registry.post(&caller, &path, body).await;
        self.world.tick(1);
        answer
    }

    async fn activate(&self, feature: &str, version: &str) -> Answer {
        let body = json!({ "featureId": feature, "version": version, "environment": "prod" });
        self.post("activate", body).await
    }

    async fn deactivate(&self, feature: &str) -> Answer {
        let body = json!({ "featureId": feature, "environment": "prod" });
        self.post("deactivate", body).await
    }

    /// Activates a feature in version 1 and returns the id of its job.
    async fn job_of(&self, feature: &str) -> String {
        let asked = self.activate(feature, "1").await.expect(202);
        asked.text("provisionJobId").to_owned()
    }

    async fn get_feature(&self, feature: &str) -> Value {
        let path = self.path(&format!("/features/{feature}"));
        self.world.get_record(&path).await.json
    }

    async fn status(&self, feature: &str) -> String {
        self.get_feature(feature).await["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    async fn manifest(&self) -> Answer {
        self.world.get_record(&self.path("/manifest")).await
    }

    /// Returns the statuses of the builds, newest first.
    async fn builds(&self) -> Vec<String> {
        let builds = self
            .world
            .get_record(&platform_path(&self.platform, "/builds"))
            .await;
        let statuses = builds.each("buildStatus").into_iter();
        statuses.map(str::to_owned).collect()
    }

    async fn deprovision(&self, environment: &str) {
        let body = json!({ "platformId": self.platform, "environment": environment });
        let path = "/api/v1/provision/platform/deprovision";
        let queued = self.world.provisioning.post(&operator(), path, body).await;
        let _ = queued.expect(202);
    }

    /// Returns the name of a feature's worker in production.
    fn worker(&self, feature: &str) -> String {
        feature_worker_name(
            &PlatformId::parse(&self.platform).unwrap(),
            &Slug::parse("engines").unwrap(),
            &EntityId::parse(&self.entity).unwrap(),
            &FeatureId::parse(feature).unwrap(),
            Environment::Prod,
        )
    }
}

on_every_store! {
    a_feature_is_created_by_one_job_and_removed_by_another,
    of_concurrent_activations_of_a_feature_one_queues_a_job,
    a_feature_ends_with_its_environment_and_a_pending_activation_fails,
}

async fn a_feature_is_created_by_one_job_and_removed_by_another(world: World) {
    let harness = Harness::over(world).await;
    let world = &harness.world;
    let asked = harness.activate("@core:search", "1.2.0").await.expect(202);
    let (id, job) = (asked.text("activationId"), asked.text("provisionJobId"));
    let wanted = json!({
        "activationId": id, "featureId": "@core:search", "status": "pending", "provisionJobId": job,
        "estimatedDurationSeconds": 30,
    });
    assert_eq!(asked.json, wanted);
    let input = &world.job(job).await["input"];
    let worker = harness.worker("@core:search");
    assert_eq!(
        (&input["version"], &input["cfName"]),
        (&json!("1.2.0"), &json!(worker))
    );
    assert_eq!(harness.manifest().await.json["features"], json!([]));
    assert_eq!(harness.builds().await, ["building"]);

    world.run_jobs().await;
    let one = harness.path("/features/%40core%3Asearch");
    let active = world.get_record(&one).await.json;
    let (asked_at, made_at) = ("2027-01-15T08:00:02.000Z", "2027-01-15T08:00:03.000Z");
    let wanted = json!({
        "id": id, "platformId": harness.platform, "entityId": harness.entity,
        "featureId": "@core:search", "featureVersion": "1.2.0", "environment": "prod",
        "status": "active", "activatedAt": made_at, "deactivatedAt": null,
        "createdAt": asked_at, "updatedAt": made_at,
    });
    assert_eq!(active, wanted);
    assert_eq!(world.provider.names(), [worker.as_str()]);
    let resources = world.get_record(&harness.path("/resources")).await;
    let resource = &resources.json["data"][0];
    let wanted = json!(["worker", "@core:search", worker, "active", job]);
    let fields = [
        "resourceType",
        "serviceName",
        "cfName",
        "status",
        "provisionJobId",
    ];
    assert_eq!(
        fields.map(|field| &resource[field]).to_vec(),
        wanted.as_array().unwrap().iter().collect::<Vec<_>>()
    );
    let url = format!("http://{worker}.test");
    let wanted = json!([{
        "id": "@core:search", "version": "1.2.0", "package": "@core:search", "serviceUrl": url,
        "status": "active",
    }]);
    assert_eq!(harness.manifest().await.json["features"], wanted);
    let build = world
        .get_record(&platform_path(&harness.platform, "/builds/latest"))
        .await;
    let fields = [
        "buildStatus",
        "triggeredBy",
        "buildUrl",
        "completedAt",
        "triggeredAt",
    ];
    let wanted = ["success", "feature_activation", &url, made_at, asked_at];
    assert_eq!(fields.map(|field| build.text(field)), wanted);

    let leaving = harness.deactivate("@core:search").await.expect(202);
    let wanted = json!({ "featureId": "@core:search", "status": "deactivating" });
    assert_eq!(leaving.json, wanted);
    world.run_jobs().await;
    let inactive = world.get_record(&one).await;
    assert_eq!(
        (inactive.text("status"), inactive.text("activatedAt")),
        ("inactive", made_at)
    );
    assert!(inactive.json["deactivatedAt"].is_string());
    assert!(world.provider.names().is_empty());
    assert_eq!(world.count(&harness.path("/resources")).await, 0);
    assert_eq!(harness.manifest().await.json["features"], json!([]));
    assert_eq!(harness.builds().await, ["success"]);

    let again = harness.activate("@core:search", "2.0.0").await.expect(202);
    assert_eq!(again.text("activationId"), id);
    world.run_jobs().await;
    let again = world.get_record(&one).await;
    assert_eq!(
        (again.text("status"), again.text("featureVersion")),
        ("active", "2.0.0")
    );
    assert_eq!(again.json["deactivatedAt"], Value::Null);
    for (action, times) in [
        ("feature.activation_queued", 2),
        ("feature.activated", 2),
        ("feature.deactivation_queued", 1),
        ("feature.deactivated", 1),
        ("build.created", 2),
    ] {
        assert_eq!(world.audit(action).await.len(), times, "{action}");
    }
}

async fn of_concurrent_activations_of_a_feature_one_queues_a_job(world: World) {
    let harness = Harness::over(world).await;
    let body = json!({ "featureId": "search", "version": "1", "environment": "prod" });
    let asked = (0..4).map(|_| {
        let (api, path) = (
            harness.world.registry.clone(),
            harness.path("/features/activate"),
        );
        let (caller, body) = (owner(&harness.platform), body.clone());
        tokio::spawn(async move { api.post(&caller, &path, body).await })
    });
    let answers: Vec<Answer> = join_all(asked)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let mut statuses: Vec<u16> = answers.iter().map(|a| a.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 202]);
    assert!(answers.iter().all(|answer| answer.json == answers[0].json));
    assert_eq!(harness.world.jobs(&harness.platform).await.len(), 1);
    assert_eq!(harness.builds().await.len(), 1);
}

#[tokio::test]
async fn activation_response_reports_the_feature_status() {
    let harness = Harness::new().await;
    harness
        .deactivate("search")
        .await
        .expect_error(404, "NOT_FOUND");
    let first = harness.activate("search", "1").await.expect(202);
    for status in ["pending", "active"] {
        let same = harness.activate("search", "1").await.expect(200);
        let mut wanted = first.json.clone();
        wanted["status"] = json!(status);
        wanted["estimatedDurationSeconds"] = same.json["estimatedDurationSeconds"].clone();
        assert_eq!(same.json, wanted);
        let other = harness
            .activate("search", "2")
            .await
            .expect_error(409, "CONFLICT");
        let details = json!({ "featureVersion": "1", "status": status });
        assert_eq!(other.json["error"]["details"], details);
        assert!(
            other.json["error"]["message"]
                .as_str()
                .unwrap()
                .contains("in version 1")
        );
        harness.world.run_jobs().await;
    }
    assert_eq!(harness.world.jobs(&harness.platform).await.len(), 1);
    let leaving = harness.deactivate("search").await.expect(202);
    let same = harness.deactivate("search").await.expect(200);
    assert_eq!(same.json, leaving.json);
    for version in ["1", "2"] {
        harness
            .activate("search", version)
            .await
            .expect_error(409, "INVALID_STATE");
    }
    harness.world.run_jobs().await;
    harness
        .deactivate("search")
        .await
        .expect_error(409, "INVALID_STATE");
    assert_eq!(harness.world.jobs(&harness.platform).await.len(), 2);
    // The feature does not exist in another environment.
    let path = harness.path("/features/search?env=stg");
    harness.world.assert_missing(&path).await;
    for word in ["activate", "deactivate", "../x", "a/b", "a\\b", ".", ".."] {
        harness
            .activate(word, "1")
            .await
            .expect_error(400, "VALIDATION_ERROR");
    }
    harness
        .deactivate("")
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let suspended = json!({ "status": "suspended" });
    let suspended = harness
        .world
        .patch_record(&harness.path(""), suspended)
        .await;
    let _ = suspended.expect(200);
    for version in ["1", "2"] {
        harness
            .activate("search", version)
            .await
            .expect_error(409, "INVALID_STATE");
    }
}

#[tokio::test]
async fn an_entity_has_at_most_200_features_per_environment() {
    let harness = Harness::new().await;
    for number in 0..200 {
        let _ = harness
            .activate(&format!("f{number}"), "1")
            .await
            .expect(202);
    }
    harness
        .activate("one-more", "1")
        .await
        .expect_error(409, "LIMIT_REACHED");
    let _ = harness.activate("f0", "1").await.expect(200);
    let elsewhere = json!({ "featureId": "one-more", "version": "1", "environment": "dev" });
    let _ = harness.post("activate", elsewhere).await.expect(202);
}

#[tokio::test]
async fn the_estimated_duration_is_that_of_the_last_activations() {
    let harness = Harness::new().await;
    let estimate = async |feature: &str| {
        let asked = harness.activate(feature, "1").await;
        let seconds = asked.json["estimatedDurationSeconds"].as_i64().unwrap();
        (asked.text("provisionJobId").to_owned(), seconds)
    };
    let fails = async |seconds: u64| {
        harness.world.provider.set_failing(true);
        harness.world.run_jobs().await;
        harness.world.provider.set_failing(false);
        harness.world.tick(seconds);
    };
    let (job, first) = estimate("slow").await;
    fails(100).await;
    harness.world.operate(&job, JobCommand::Retry).await;
    harness.world.run_jobs().await;
    let (forced, after_one) = estimate("forced").await;
    fails(7_000).await;
    harness
        .world
        .operate(&forced, JobCommand::ForceComplete)
        .await;
    let (_, after_forced) = estimate("quick").await;
    assert_eq!((first, after_one, after_forced), (30, 100, 100));
    harness.world.run_jobs().await;
    assert_eq!(estimate("next").await.1, 50);
    for number in 0..20 {
        estimate(&format!("f{number}")).await;
        harness.world.run_jobs().await;
    }
    assert_eq!(estimate("last").await.1, 1);
}

/// Covers jobs that have failed and jobs that have not started.
#[tokio::test]
async fn operations_on_a_job_are_applied_to_its_feature_and_build() {
    let harness = Harness::new().await;
    let world = &harness.world;
    let stands = async |feature: &str| {
        (
            harness.status(feature).await,
            harness.builds().await[0].clone(),
        )
    };
    let both = |status: &str, build: &str| (status.to_owned(), build.to_owned());
    let job = harness.job_of("retried").await;
    world.provider.set_failing(true);
    world.run_jobs().await;
    assert_eq!(stands("retried").await, both("failed", "failed"));
    world.provider.set_failing(false);
    world.operate(&job, JobCommand::Retry).await;
    assert_eq!(stands("retried").await, both("pending", "building"));
    world.run_jobs().await;
    assert_eq!(stands("retried").await, both("active", "success"));

    let job = harness.job_of("cancelled").await;
    world.operate(&job, JobCommand::Cancel).await;
    assert_eq!(stands("cancelled").await, both("failed", "failed"));
    world.operate(&job, JobCommand::ForceComplete).await;
    assert_eq!(stands("cancelled").await, both("active", "success"));
    let manifest = harness.manifest().await.json;
    assert_eq!(manifest["features"][0]["serviceUrl"], Value::Null);

    let _ = harness.deactivate("retried").await.expect(202);
    let removal = world.jobs(&harness.platform).await[0]["jobId"].clone();
    let removal = removal.as_str().unwrap();
    world.provider.set_failing(true);
    world.run_jobs().await;
    assert_eq!(harness.status("retried").await, "failed");
    world.operate(removal, JobCommand::Retry).await;
    assert_eq!(harness.status("retried").await, "deactivating");
    world.run_jobs().await;
    world.provider.set_failing(false);
    world.operate(removal, JobCommand::ForceComplete).await;
    assert_eq!(harness.status("retried").await, "inactive");
    assert_eq!(
        world.provider.names().len(),
        1,
        "the object was not removed"
    );
}

#[tokio::test]
async fn the_removal_of_a_pending_feature_waits_for_its_activation() {
    let harness = Harness::new().await;
    harness.job_of("search").await;
    let _ = harness.deactivate("search").await.expect(202);
    assert_eq!(harness.status("search").await, "deactivating");
    harness.world.run_jobs().await;
    assert_eq!(harness.status("search").await, "inactive");
    assert!(harness.world.provider.names().is_empty());
    assert_eq!(harness.world.count(&harness.path("/resources")).await, 0);
    let jobs = harness.world.jobs(&harness.platform).await;
    assert!(
        jobs.iter().all(|job| job["status"] == "COMPLETED"),
        "{jobs:?}"
    );
}

#[tokio::test]
async fn a_superseded_job_changes_nothing() {
    let harness = Harness::new().await;
    let world = &harness.world;
    let first = harness.job_of("search").await;
    world.provider.set_failing(true);
    world.run_jobs().await;
    world.provider.set_failing(false);
    let _ = harness.activate("search", "2").await.expect(202);
    world.operate(&first, JobCommand::Retry).await;
    assert_eq!(harness.status("search").await, "pending");
    world.run_jobs().await;
    let shown = harness.get_feature("search").await;
    assert_eq!(
        (&shown["status"], &shown["featureVersion"]),
        (&json!("active"), &json!("2"))
    );
    assert_eq!(
        world.job(&first).await["error"]["code"],
        "PRECONDITION_FAILED"
    );
    assert_eq!(harness.builds().await, ["success", "failed"]);
}

async fn a_feature_ends_with_its_environment_and_a_pending_activation_fails(world: World) {
    let harness = Harness::over(world).await;
    let world = &harness.world;
    harness.job_of("active").await;
    let in_staging = json!({ "featureId": "active", "version": "1", "environment": "stg" });
    let _ = harness.post("activate", in_staging).await.expect(202);
    world.run_jobs().await;
    // A feature whose job stopped before it could record the worker that it created.
    let failed = harness.job_of("failed").await;
    world.operate(&failed, JobCommand::Cancel).await;
    let made = ObjectRequest {
        resource: ResourceRef {
            resource_type: ResourceType::Worker,
            name: harness.worker("failed"),
        },
        owner: harness.platform.clone(),
        effect_key: "made".to_owned(),
        config: json!({}),
    };
    world.provider.create(&made).await.unwrap();
    let late = harness.job_of("late").await;
    harness.deprovision("prod").await;
    world.run_jobs().await;
    for feature in ["active", "failed", "late"] {
        assert_eq!(harness.status(feature).await, "inactive", "{feature}");
    }
    let elsewhere = harness.get_feature("active?env=stg").await;
    assert_eq!(elsewhere["status"], "active");
    let left = world.provider.names();
    assert!(left.len() == 1 && left[0].ends_with("-stg"), "{left:?}");
    assert_eq!(
        world.job(&late).await["error"]["code"],
        "PRECONDITION_FAILED"
    );
    // All features can be activated again.
    let _ = harness.activate("late", "1").await.expect(202);
    world.run_jobs().await;
    assert_eq!(harness.status("late").await, "active");
}

#[tokio::test]
async fn an_entity_with_a_feature_in_use_can_only_be_deleted_in_a_cascade() {
    let harness = Harness::new().await;
    let world = &harness.world;
    let entity = harness.path("");
    let delete = async |query: &str| {
        let path = format!("{entity}{query}");
        world.registry.delete(&operator(), &path).await
    };
    let refused = async |resources: u64| {
        let refused = delete("").await.expect_error(409, "CONFLICT");
        let details = json!({
            "children": 0, "resources": resources, "stacks": 0, "features": 1,
        });
        assert_eq!(refused.json["error"]["details"], details);
    };
    let first = harness.job_of("search").await;
    refused(0).await;
    world.run_jobs().await;
    refused(1).await;
    let _ = harness.deactivate("search").await.expect(202);
    refused(1).await;
    world.run_jobs().await;
    assert_eq!(world.job(&first).await["status"], "COMPLETED");
    let dry = delete("?dryRun=true").await.expect(200);
    let plan = json!({
        "entities": 1, "resources": 0, "stacks": 0, "features": 0, "dnsRecords": 0, "domains": 0,
    });
    assert_eq!(dry.json["plan"], plan);

    let _ = harness.activate("search", "1").await.expect(202);
    world.run_jobs().await;
    let late = harness.job_of("late").await;
    let _ = delete("?cascade=true").await.expect(200);
    assert_eq!(world.audit("feature.ended").await.len(), 2);
    world.assert_missing(&harness.path("/manifest")).await;
    harness
        .activate("search", "1")
        .await
        .expect_error(404, "NOT_FOUND");
    world.run_jobs().await;
    assert_eq!(
        world.job(&late).await["error"]["message"],
        "the entity is gone"
    );
    assert!(world.provider.names().is_empty());
}

#[tokio::test]
async fn nothing_is_created_or_removed_for_a_deleted_platform() {
    let harness = Harness::new().await;
    let world = &harness.world;
    harness.job_of("search").await;
    world.run_jobs().await;
    let _ = harness.deactivate("search").await.expect(202);
    harness.job_of("late").await;
    world
        .delete_record(&platform_path(&harness.platform, ""))
        .await;
    world.run_jobs().await;
    for job in &world.jobs(&harness.platform).await[..2] {
        assert_eq!(job["error"]["message"], "the platform is gone");
    }
    assert_eq!(world.provider.names(), [harness.worker("search")]);
    for feature in ["search", "late"] {
        assert_eq!(harness.status(feature).await, "failed");
    }
}

#[tokio::test]
async fn a_manifest_lists_active_features_by_id_and_its_entity_tag_covers_its_content() {
    let harness = Harness::new().await;
    let world = &harness.world;
    let empty = harness.manifest().await;
    for feature in ["search", "billing", "Zones"] {
        harness.job_of(feature).await;
    }
    assert_eq!(
        harness.manifest().await.header("etag"),
        empty.header("etag")
    );
    world.run_jobs().await;
    harness.job_of("pending").await;
    let manifest = harness.manifest().await;
    let head = ["platformId", "entityId", "environment"].map(|field| manifest.text(field));
    assert_eq!(head, [harness.platform.as_str(), &harness.entity, "prod"]);
    let features = manifest.json["features"].as_array().unwrap().clone();
    let ids: Vec<&Value> = features.iter().map(|feature| &feature["id"]).collect();
    assert_eq!(ids, ["Zones", "billing", "search"]);
    world.tick(60);
    let tag = manifest.header("etag");
    let later = harness.manifest().await;
    assert_ne!(later.text("generatedAt"), manifest.text("generatedAt"));
    assert_eq!(later.header("etag"), tag);
    let path = harness.path("/manifest");
    let known = [("if-none-match", tag)];
    let caller = operator();
    let same = world
        .registry
        .send(&caller, "GET", &path, &known, Value::Null);
    let _ = same.await.expect(304);
    let _ = harness.deactivate("billing").await.expect(202);
    assert_ne!(harness.manifest().await.header("etag"), tag);
    let elsewhere = world.get_record(&harness.path("/manifest?env=dev")).await;
    assert_eq!(elsewhere.json["features"], json!([]));
    let nowhere = harness.path("/manifest?env=moon");
    let refused = world.registry.get(&operator(), &nowhere).await;
    refused.expect_error(400, "VALIDATION_ERROR");
}
