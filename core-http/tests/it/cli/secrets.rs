//! The secrets of a platform's worker or site.

use core_domain::kernel::Secret;
use core_domain::port::{Infrastructure, ResourceRef, SetSecrets};
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use crate::world::{Answer, World, admin, operator, owner, plain_member, platform_path};

const VALUE: &str = "correct-horse-battery-staple";

struct SecretsHarness {
    world: World,
    platform: String,
    /// The id of the worker's resource.
    worker: String,
}

impl SecretsHarness {
    async fn new() -> Self {
        let world = World::new();
        let platform = world.create_platform("engines").await;
        let tenant = world.tenant(&platform, "parent").await;
        let worker = world
            .active_worker(&platform, &tenant, "engines-worker")
            .await;
        Self {
            world,
            platform,
            worker,
        }
    }

    fn path(&self, rest: &str) -> String {
        platform_path(&self.platform, &format!("/secrets{rest}"))
    }

    async fn set(&self, secrets: Value) -> Answer {
        let body = json!({ "secrets": secrets, "resourceId": self.worker });
        let caller = admin(&self.platform);
        self.world.cli.post(&caller, &self.path(""), body).await
    }

    async fn delete(&self, name: &str) -> Answer {
        let path = self.path(&format!("/{name}?resourceId={}", self.worker));
        self.world.cli.delete(&admin(&self.platform), &path).await
    }

    /// Returns the names and statuses in the registry.
    async fn secrets_in_registry(&self) -> Vec<(String, String)> {
        let path = self.path(&format!("?resourceId={}", self.worker));
        let list = self
            .world
            .cli
            .get(&admin(&self.platform), &path)
            .await
            .expect(200);
        let list = list.json["data"].as_array().unwrap().clone();
        let text = |secret: &Value, field: &str| secret[field].as_str().unwrap().to_owned();
        let both = |secret: &Value| (text(secret, "name"), text(secret, "status"));
        list.iter().map(both).collect()
    }

    /// Returns the names at the provider.
    async fn secrets_at_provider(&self) -> Vec<String> {
        let worker = ResourceRef {
            resource_type: ResourceType::Worker,
            name: "engines-worker".to_owned(),
        };
        self.world.provider.secret_names(&worker).await.unwrap()
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, status): &(&str, &str)| ((*name).to_owned(), (*status).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn secrets_go_to_the_provider_and_only_their_names_to_the_registry() {
    let harness = SecretsHarness::new().await;
    let set = harness
        .set(json!({ "API_KEY": VALUE, "TOKEN": "t" }))
        .await
        .expect(200);
    let results = json!({ "API_KEY": "ok", "TOKEN": "ok" });
    assert_eq!(
        set.json,
        json!({ "platformId": harness.platform, "results": results })
    );
    assert_eq!(harness.secrets_at_provider().await, ["API_KEY", "TOKEN"]);
    let recorded = pairs(&[("API_KEY", "set"), ("TOKEN", "set")]);
    assert_eq!(harness.secrets_in_registry().await, recorded);
    let _ = harness.set(json!({ "TOKEN": "u" })).await.expect(200);
    let recorded = pairs(&[("API_KEY", "set"), ("TOKEN", "rotated")]);
    assert_eq!(harness.secrets_in_registry().await, recorded);
    for action in ["resource_secret.created", "resource_secret.updated"] {
        let entries = harness.world.audit(action).await;
        assert!(!entries.is_empty());
        assert!(!format!("{entries:?}").contains(VALUE));
    }
}

#[tokio::test]
async fn a_deleted_secret_has_no_value_and_stays_in_the_list() {
    let harness = SecretsHarness::new().await;
    let _ = harness
        .set(json!({ "API_KEY": VALUE, "TOKEN": "t" }))
        .await
        .expect(200);
    let _ = harness.delete("API_KEY").await.expect(200);
    assert_eq!(harness.secrets_at_provider().await, ["TOKEN"]);
    let recorded = pairs(&[("API_KEY", "missing"), ("TOKEN", "set")]);
    assert_eq!(harness.secrets_in_registry().await, recorded);
    harness.delete("OTHER").await.expect_error(404, "NOT_FOUND");
    harness
        .delete("lower")
        .await
        .expect_error(400, "VALIDATION_ERROR");
    let _ = harness.set(json!({ "API_KEY": VALUE })).await.expect(200);
    assert_eq!(harness.secrets_in_registry().await[0].1, "set");
}

#[tokio::test]
async fn invalid_secrets_are_refused_completely_and_never_repeated() {
    let harness = SecretsHarness::new().await;
    let many: Value = (0..101)
        .map(|n| (format!("N{n}"), json!("v")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let long = "é".repeat(2_561);
    for (secrets, issue) in [
        (json!({}), "secrets: too_short"),
        (many, "secrets: too_long"),
        (
            json!({ "GOOD": VALUE, "bad-name": VALUE }),
            "secrets.bad-name: pattern",
        ),
        (json!({ "1A": VALUE }), "secrets.1A: pattern"),
        (json!({ "A": "" }), "secrets.A: too_short"),
        (json!({ "A": 1 }), "secrets.A: invalid_type"),
        (json!({ "A": "x".repeat(5_121) }), "secrets.A: too_long"),
        (json!({ "A": long }), "secrets.A: too_long"),
    ] {
        let refused = harness.set(secrets).await;
        assert_eq!(refused.issues(), [issue]);
        assert!(!refused.json.to_string().contains(VALUE));
        refused.expect_error(400, "VALIDATION_ERROR");
    }
    assert!(harness.secrets_at_provider().await.is_empty());
    assert!(harness.secrets_in_registry().await.is_empty());
    let exact = harness.set(json!({ "A": "x".repeat(5_120) })).await;
    let _ = exact.expect(200);
}

#[tokio::test]
async fn only_workers_and_sites_of_the_platform_have_secrets() {
    let harness = SecretsHarness::new().await;
    let (world, platform) = (&harness.world, &harness.platform);
    let tenant = world.tenant(platform, "other").await;
    let database = world.resource(platform, &tenant, "engines-db").await;
    let foreign = world.create_platform("other").await;
    let foreign_tenant = world.tenant(&foreign, "parent").await;
    let foreign_worker = world
        .active_worker(&foreign, &foreign_tenant, "other-worker")
        .await;
    let set = async |caller, resource: Value| {
        let body = json!({ "secrets": { "A": "v" }, "resourceId": resource });
        world.cli.post(&caller, &harness.path(""), body).await
    };
    let admin = admin(platform);
    set(admin.clone(), json!(database))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    set(admin.clone(), json!(foreign_worker))
        .await
        .expect_error(404, "NOT_FOUND");
    // Without an id, the secrets are those of the platform's worker, which does not exist yet.
    set(admin, json!(null))
        .await
        .expect_error(409, "INVALID_STATE");
    set(plain_member(platform), json!(harness.worker))
        .await
        .expect_error(403, "FORBIDDEN");
    set(owner(&foreign), json!(harness.worker))
        .await
        .expect_error(404, "NOT_FOUND");
    world.provision(platform).await;
    world.run_jobs().await;
    let body = json!({ "secrets": { "A": "v" } });
    let set = world.cli.post(&operator(), &harness.path(""), body).await;
    let _ = set.expect(200);
    let list = world
        .cli
        .get(&operator(), &harness.path(""))
        .await
        .expect(200);
    assert_eq!(list.json["data"][0]["name"], "A");
    assert!(harness.secrets_at_provider().await.is_empty());
}

#[tokio::test]
async fn the_secrets_of_a_resource_are_limited() {
    let harness = SecretsHarness::new().await;
    for start in [0, 100] {
        let secrets = (start..start + 100).map(|n| (format!("N{n}"), json!("v")));
        let secrets = secrets.collect::<serde_json::Map<_, _>>();
        let _ = harness.set(secrets.into()).await.expect(200);
    }
    let refused = harness.set(json!({ "N1": "w", "ONE_MORE": "v" })).await;
    refused.expect_error(409, "LIMIT_REACHED");
    assert!(
        !harness
            .secrets_at_provider()
            .await
            .contains(&"ONE_MORE".to_owned())
    );
    let _ = harness.set(json!({ "N1": "w" })).await.expect(200);
}

#[tokio::test]
async fn a_failing_provider_leaves_the_registry_unchanged() {
    let harness = SecretsHarness::new().await;
    harness.world.provider.set_failing(true);
    let refused = harness.set(json!({ "A": VALUE })).await;
    assert!(!refused.json.to_string().contains(VALUE));
    refused.expect_error(409, "INVALID_STATE");
    assert!(harness.secrets_in_registry().await.is_empty());
}

/// Sets a secret at the provider as a process does that dies before it records it.
async fn set_at_provider(harness: &SecretsHarness, name: &str) {
    let request = SetSecrets {
        resource: ResourceRef {
            resource_type: ResourceType::Worker,
            name: "engines-worker".to_owned(),
        },
        owner: harness.platform.clone(),
        secrets: vec![(name.to_owned(), Secret::new(VALUE))],
        deleted: Vec::new(),
    };
    harness.world.provider.set_secrets(&request).await.unwrap();
}

#[tokio::test]
async fn a_crash_between_provider_and_registry_is_repaired_by_the_next_call() {
    let harness = SecretsHarness::new().await;
    set_at_provider(&harness, "A").await;
    assert!(harness.secrets_in_registry().await.is_empty());
    let _ = harness.set(json!({ "A": VALUE })).await.expect(200);
    assert_eq!(harness.secrets_in_registry().await, pairs(&[("A", "set")]));
    // An unrecorded secret can be deleted as well.
    set_at_provider(&harness, "B").await;
    let _ = harness.delete("B").await.expect(200);
    assert_eq!(harness.secrets_at_provider().await, ["A"]);
}

#[tokio::test]
async fn reconcile_records_unrecorded_secrets_and_reports_lost_ones() {
    let harness = SecretsHarness::new().await;
    let _ = harness
        .set(json!({ "LOST": VALUE, "KEPT": VALUE }))
        .await
        .expect(200);
    let lost = SetSecrets {
        resource: ResourceRef {
            resource_type: ResourceType::Worker,
            name: "engines-worker".to_owned(),
        },
        owner: harness.platform.clone(),
        secrets: Vec::new(),
        deleted: vec!["LOST".to_owned()],
    };
    harness.world.provider.set_secrets(&lost).await.unwrap();
    set_at_provider(&harness, "UNRECORDED").await;
    let reconcile = async |repair: bool| {
        let body = json!({ "platformId": harness.platform, "repair": repair });
        let path = "/api/v1/provision/platform/reconcile";
        let queued = harness
            .world
            .provisioning
            .post(&operator(), path, body)
            .await
            .expect(202);
        harness.world.run_jobs().await;
        let path = format!("/api/v1/provision/jobs/{}", queued.text("jobId"));
        let job = harness
            .world
            .provisioning
            .get(&operator(), &path)
            .await
            .expect(200);
        let steps = job.json["steps"].as_array().unwrap().clone();
        steps
            .into_iter()
            .find(|step| step["name"] == "secrets")
            .unwrap()["output"]
            .clone()
    };
    let report = reconcile(false).await;
    assert_eq!(report["orphans"], json!(["engines-worker/UNRECORDED"]));
    assert_eq!(report["missing"], json!(["engines-worker/LOST"]));
    assert_eq!(harness.secrets_in_registry().await.len(), 2);
    let report = reconcile(true).await;
    assert_eq!(report["counts"]["repaired"], 2);
    let repaired = pairs(&[("KEPT", "set"), ("LOST", "missing"), ("UNRECORDED", "set")]);
    assert_eq!(harness.secrets_in_registry().await, repaired);
    assert_eq!(reconcile(true).await["counts"]["repaired"], 0);
}
