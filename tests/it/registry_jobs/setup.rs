//! Provisioning a platform: exactly six things, by name, and in the catalogue.

use core_domain::kernel::{Environment, PlatformId};
use core_domain::port::{CreateResource, Infrastructure, ResourceRef, transact};
use core_domain::provisioning::{FailureKind, JobStatus};
use core_domain::registry::{EntityQuery, ResourceStatus, ResourceType};
use core_domain::use_case::registry::{Provision, delete_entity, provision_platform};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::world::World;

const PURPOSES: [(ResourceType, &str); 6] = [
    (ResourceType::D1, "db"),
    (ResourceType::Kv, "cache"),
    (ResourceType::R2, "assets"),
    (ResourceType::Queue, "events"),
    (ResourceType::Worker, "api"),
    (ResourceType::Pages, "site"),
];

fn name(slug: &str, platform: &PlatformId, environment: &str, purpose: &str) -> String {
    let digest = Sha256::digest(platform.as_str());
    let hex: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("{slug}-{hex}-{environment}-{purpose}")
}

async fn six_resources(world: World) {
    let done = world.set_up("engines-of-a-very-long-name").await;
    assert!(world.entries(&done.platform_id, true).await.is_empty());
    world.until_idle().await;
    let job = world.job(&done.job_id).await;
    assert_eq!(job.status, JobStatus::Completed);
    let steps: Vec<&str> = job.steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(steps, ["d1", "kv", "r2", "queue", "worker", "pages"]);

    let platform = &done.platform_id;
    world.has_exactly_six(platform, "set up").await;
    let mut uow = world.unit().await;
    let tenants = EntityQuery::TenantsOf(platform.clone());
    let tenants = uow.entities().list(&tenants, 10).await.unwrap();
    assert_eq!(tenants.len(), 1);
    let entries = world.entries(platform, false).await;
    for (resource_type, purpose) in PURPOSES {
        let wanted = name("engines-of-a-very-long-n", platform, "prod", purpose);
        let entry = entries
            .iter()
            .find(|r| r.resource_type == resource_type)
            .unwrap();
        assert_eq!(
            (&entry.cf_name, entry.service_name.as_str()),
            (&wanted, purpose)
        );
        assert_eq!(
            (entry.status, entry.environment),
            (ResourceStatus::Active, Environment::Prod)
        );
        assert_eq!(entry.entity_id, tenants[0].id);
        assert_eq!(entry.provision_job_id.as_ref(), Some(&done.job_id));
        let resource = ResourceRef {
            resource_type,
            name: wanted,
        };
        let thing = world.local.observe(&resource).await.unwrap().unwrap();
        assert_eq!(
            (Some(&thing.id), &thing.url),
            (entry.cf_id.as_ref(), &entry.cf_url)
        );
        assert_eq!(thing.owner, platform.as_str());
        assert!(resource_type != ResourceType::Pages || entry.cf_url.is_some());
    }
    let api = name("engines-of-a-very-long-n", platform, "prod", "api");
    let script = world.local.worker(&api).await.unwrap().unwrap().script;
    assert!(script.modules[&script.main_module].contains("fetch"));
    let bound: Vec<(String, String)> = script
        .bindings
        .into_iter()
        .map(|b| (b.name, b.resource))
        .collect();
    let wanted = ["db", "cache", "assets", "events"].map(|purpose| {
        (
            purpose.to_uppercase(),
            name("engines-of-a-very-long-n", platform, "prod", purpose),
        )
    });
    assert_eq!(bound, wanted);
}

#[tokio::test]
async fn a_new_organization_has_six_resources_on_memory() {
    six_resources(World::memory().await).await;
}

#[tokio::test]
async fn a_new_organization_has_six_resources_on_sqlite() {
    six_resources(World::sqlite().await).await;
}

#[tokio::test]
async fn a_new_organization_has_six_resources_on_postgres() {
    six_resources(World::postgres().await).await;
}

async fn provision(world: &World, platform: &PlatformId, environment: Environment) {
    let wanted = Provision {
        plan_tier: "starter".to_owned(),
        billing_email: None,
        entity_id: None,
        environment,
    };
    let queued = transact(world.store.as_ref(), |uow, _| {
        let (cx, wanted) = (&world.cx, wanted.clone());
        Box::pin(async move { provision_platform(cx, uow, platform, wanted).await })
    });
    let job = queued.await.unwrap();
    world.until_idle().await;
    assert_eq!(world.status(&job.id).await, JobStatus::Completed);
}

#[tokio::test]
async fn provisioning_what_is_there_changes_nothing_and_every_environment_has_its_own_six() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    world.until_idle().await;
    let before = world.things(&done.platform_id).await;
    let ids = |entries: Vec<core_domain::registry::Resource>| -> Vec<_> {
        entries.into_iter().map(|r| (r.id, r.cf_id)).collect()
    };
    let known = ids(world.entries(&done.platform_id, true).await);
    provision(&world, &done.platform_id, Environment::Prod).await;
    assert_eq!(world.things(&done.platform_id).await, before);
    assert_eq!(ids(world.entries(&done.platform_id, true).await), known);
    provision(&world, &done.platform_id, Environment::Dev).await;
    assert_eq!(world.things(&done.platform_id).await.len(), 12);
    assert_eq!(world.entries(&done.platform_id, true).await.len(), 12);
}

#[tokio::test]
async fn a_name_that_belongs_to_somebody_else_fails_the_job_and_is_left_alone() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    let foreign = CreateResource {
        resource: ResourceRef {
            resource_type: ResourceType::R2,
            name: name("engines", &done.platform_id, "prod", "assets"),
        },
        owner: "somebody-else".to_owned(),
        effect_key: "theirs".to_owned(),
        config: json!({}),
    };
    let theirs = world.local.create(&foreign).await.unwrap();
    world.until_idle().await;
    let job = world.job(&done.job_id).await;
    assert_eq!(
        (job.status, job.failure_kind),
        (JobStatus::Failed, Some(FailureKind::PermanentError))
    );
    assert_eq!(job.error.unwrap().code, "NAME_TAKEN");
    let still = world.local.observe(&foreign.resource).await.unwrap();
    assert_eq!(still, Some(theirs));
    let made: Vec<_> = world
        .entries(&done.platform_id, true)
        .await
        .into_iter()
        .map(|r| r.service_name)
        .collect();
    assert_eq!(made, ["db", "cache"]);
}

#[tokio::test]
async fn nothing_is_made_for_an_entity_that_is_gone_when_its_job_is_worked_on() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    let platform = &done.platform_id;
    let tenants = EntityQuery::TenantsOf(platform.clone());
    let tenant = world
        .unit()
        .await
        .entities()
        .first(&tenants)
        .await
        .unwrap()
        .unwrap();
    let deleted = transact(world.store.as_ref(), |uow, _| {
        let (cx, tenant) = (&world.cx, &tenant.id);
        Box::pin(async move { delete_entity(cx, uow, platform, tenant, false).await })
    });
    deleted.await.unwrap();
    world.until_idle().await;
    let job = world.job(&done.job_id).await;
    assert_eq!(
        (job.status, job.failure_kind),
        (JobStatus::Failed, Some(FailureKind::PermanentError))
    );
    assert!(world.things(platform).await.is_empty());
    assert!(world.entries(platform, true).await.is_empty());
}
