//! Provisioning a platform creates exactly six objects, with the derived names and a record for each.

use std::collections::BTreeSet;

use core_domain::kernel::{EntityId, Environment, PlatformId};
use core_domain::port::{Infrastructure, ObjectRequest, ResourceRef};
use core_domain::provisioning::{FailureKind, JobStatus};
use core_domain::registry::{
    DEFAULT_RESOURCES, Entity, EntityQuery, Resource, ResourceStatus, ResourceType,
};
use core_domain::use_case::registry::entity;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::world::{Platforms, as_operator, on_every_store};

on_every_store! { Platforms: a_new_organization_gets_six_resources }

const SLUG: &str = "engines-of-a-very-long-name";
/// The slug as it is shortened in the names of resources.
const SLUG_IN_NAMES: &str = "engines-of-a-very-long-n";

fn name(slug: &str, platform: &PlatformId, environment: &str, purpose: &str) -> String {
    let digest = Sha256::digest(platform.as_str());
    let hex: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("{slug}-{hex}-{environment}-{purpose}")
}

async fn tenant_of(world: &Platforms) -> EntityId {
    let tenants: Vec<Entity> = world.list(EntityQuery::Tenants).await;
    assert_eq!(tenants.len(), 1);
    tenants[0].id.clone()
}

async fn a_new_organization_gets_six_resources(world: Platforms) {
    let done = world.set_up(SLUG).await;
    let platform = &done.platform_id;
    assert!(world.entries(platform, true).await.is_empty());
    world.until_idle().await;
    let job = world.job(&done.job_id).await;
    assert_eq!(job.status, JobStatus::Completed);
    let steps: Vec<&str> = job.steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(steps, ["d1", "kv", "r2", "queue", "worker", "pages"]);
    world.assert_six_objects(platform, "set up").await;
    let tenant = tenant_of(&world).await;
    for entry in world.entries(platform, false).await {
        assert_eq!(entry.entity_id, tenant);
        assert_eq!(entry.provision_job_id.as_ref(), Some(&done.job_id));
        shows_its_object(&world, &entry).await;
    }
    assert_bound_to_the_others(&world, platform).await;
}

async fn shows_its_object(world: &Platforms, entry: &Resource) {
    let of_type = DEFAULT_RESOURCES
        .iter()
        .find(|r| r.0 == entry.resource_type);
    let purpose = of_type.unwrap().1;
    let named = name(SLUG_IN_NAMES, &entry.platform_id, "prod", purpose);
    let names = (entry.cf_name.as_str(), entry.service_name.as_str());
    assert_eq!(names, (named.as_str(), purpose));
    let stands = (entry.status, entry.environment);
    assert_eq!(stands, (ResourceStatus::Active, Environment::Prod));
    let resource = ResourceRef {
        resource_type: entry.resource_type,
        name: named,
    };
    let object = world.provider.observe(&resource).await.unwrap().unwrap();
    assert_eq!(entry.cf_id.as_ref().unwrap().as_str(), object.id);
    assert_eq!(entry.cf_url, object.url);
    assert_eq!(object.owner.as_deref(), Some(entry.platform_id.as_str()));
    assert!(entry.resource_type != ResourceType::Pages || entry.cf_url.is_some());
}

async fn assert_bound_to_the_others(world: &Platforms, platform: &PlatformId) {
    let named = |purpose| name(SLUG_IN_NAMES, platform, "prod", purpose);
    let script = world.provider.worker(&named("api")).await.unwrap();
    let script = script.unwrap().script;
    assert!(script.modules[&script.main_module].contains("fetch"));
    let bound = script.bindings.into_iter().map(|b| (b.name, b.resource));
    let wanted = ["db", "cache", "assets", "events"];
    let wanted = wanted.map(|purpose| (purpose.to_uppercase(), named(purpose)));
    assert_eq!(bound.collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn provisioning_again_changes_nothing_and_each_environment_has_six_resources() {
    let world = Platforms::memory().await;
    let platform = &world.complete().await;
    let before = world.objects(platform).await;
    let ids = |entries: Vec<Resource>| -> BTreeSet<_> {
        let ids = entries.into_iter().map(|entry| (entry.id, entry.cf_id));
        ids.collect()
    };
    let known = ids(world.entries(platform, true).await);
    for (at, count) in [(Environment::Prod, 6), (Environment::Dev, 12)] {
        let job = world.provision(platform, at).await;
        world.until_idle().await;
        assert_eq!(world.status(&job).await, JobStatus::Completed);
        assert_eq!(world.objects(platform).await.len(), count);
        let now = ids(world.entries(platform, true).await);
        assert!(now.len() == count && now.is_superset(&known));
        assert!(world.objects(platform).await.is_superset(&before));
    }
}

#[tokio::test]
async fn a_name_owned_by_someone_else_fails_the_job_and_is_left_unchanged() {
    let world = Platforms::memory().await;
    let done = world.set_up("engines").await;
    let foreign = ObjectRequest {
        resource: ResourceRef {
            resource_type: ResourceType::R2,
            name: name("engines", &done.platform_id, "prod", "assets"),
        },
        owner: "somebody-else".to_owned(),
        effect_key: "theirs".to_owned(),
        config: json!({}),
    };
    let theirs = world.provider.create(&foreign).await.unwrap();
    world.until_idle().await;
    let job = world.job(&done.job_id).await;
    let ended = (job.status, job.failure_kind);
    let stopped = (JobStatus::Failed, Some(FailureKind::PermanentError));
    assert_eq!(ended, stopped);
    assert_eq!(job.error.unwrap().code, "NAME_TAKEN");
    let still = world.provider.observe(&foreign.resource).await.unwrap();
    assert_eq!(still, Some(theirs));
    let made = world.entries(&done.platform_id, true).await.into_iter();
    let made: BTreeSet<String> = made.map(|r| r.service_name.to_string()).collect();
    assert_eq!(made, ["cache", "db"].map(str::to_owned).into());
}

#[tokio::test]
async fn nothing_is_created_for_an_entity_deleted_before_its_job_runs() {
    let world = Platforms::memory().await;
    let done = world.set_up("engines").await;
    let platform = &done.platform_id;
    let tenant = &tenant_of(&world).await;
    as_operator!(world, platform, |cx, scope, uow| entity::delete(
        cx, scope, uow, tenant, false
    ));
    world.until_idle().await;
    let job = world.job(&done.job_id).await;
    let ended = (job.status, job.failure_kind);
    let stopped = (JobStatus::Failed, Some(FailureKind::PermanentError));
    assert_eq!(ended, stopped);
    assert!(world.objects(platform).await.is_empty());
    assert!(world.entries(platform, true).await.is_empty());
}
