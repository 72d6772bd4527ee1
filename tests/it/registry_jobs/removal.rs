//! Deprovisioning an environment, and removing a platform for good.

use core_domain::kernel::{Context, Environment, JobId, PlatformId};
use core_domain::port::{CreateResource, Infrastructure, ResourceRef, transact};
use core_domain::provisioning::JobStatus;
use core_domain::registry::{PlatformEvent, PlatformStatus, ResourceStatus, ResourceType};
use core_domain::use_case::registry::{
    NewResource, Provision, create_resource, deprovision_platform, move_platform,
    provision_platform,
};
use serde_json::json;

use super::world::World;

pub(super) async fn hard_delete(world: &World, platform: &PlatformId) {
    let done = transact(world.store.as_ref(), |uow, _| {
        let cx = &world.cx;
        Box::pin(
            async move { move_platform(cx, uow, platform, PlatformEvent::HardDelete, None).await },
        )
    });
    assert_eq!(done.await.unwrap().status, PlatformStatus::Deleted);
}

pub(super) async fn deprovision(
    world: &World,
    platform: &PlatformId,
    environment: Environment,
) -> JobId {
    let queued = transact(world.store.as_ref(), |uow, _| {
        let cx = &world.cx;
        Box::pin(async move { deprovision_platform(cx, uow, platform, environment).await })
    });
    queued.await.unwrap().id.clone()
}

pub(super) async fn provision(
    world: &World,
    platform: &PlatformId,
    environment: Environment,
) -> JobId {
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
    queued.await.unwrap().id.clone()
}

async fn an_environment_is_removed(world: World) {
    let done = world.set_up("engines").await;
    let platform = &done.platform_id;
    provision(&world, platform, Environment::Dev).await;
    world.until_idle().await;
    assert_eq!(world.things(platform).await.len(), 12);
    let job = deprovision(&world, platform, Environment::Prod).await;
    world.until_idle().await;
    let job = world.job(&job).await;
    assert_eq!(job.status, JobStatus::Completed);
    let steps: Vec<&str> = job.steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(steps, ["pages", "worker", "queue", "r2", "kv", "d1"]);
    let things = world.things(platform).await;
    assert_eq!(things.len(), 6);
    assert!(things.iter().all(|name| name.contains("-dev-")));
    let living = world.entries(platform, false).await;
    assert!(living.len() == 6 && living.iter().all(|r| r.environment == Environment::Dev));
    let all = world.entries(platform, true).await;
    let buried = all.iter().filter(|r| r.environment == Environment::Prod);
    assert_eq!(all.len(), 12);
    assert!(
        buried
            .clone()
            .all(|r| r.status == ResourceStatus::Deleted && r.deleted_at.is_some())
    );
    // The platform is still there, and can be given all of it again.
    let again = provision(&world, platform, Environment::Prod).await;
    world.until_idle().await;
    assert_eq!(world.status(&again).await, JobStatus::Completed);
    assert_eq!(world.things(platform).await.len(), 12);
    assert_eq!(world.entries(platform, false).await.len(), 12);
}

#[tokio::test]
async fn deprovisioning_removes_an_environment_and_leaves_the_others_on_memory() {
    an_environment_is_removed(World::memory().await).await;
}

#[tokio::test]
async fn deprovisioning_removes_an_environment_and_leaves_the_others_on_sqlite() {
    an_environment_is_removed(World::sqlite().await).await;
}

#[tokio::test]
async fn deprovisioning_removes_an_environment_and_leaves_the_others_on_postgres() {
    an_environment_is_removed(World::postgres().await).await;
}

#[tokio::test]
async fn what_others_entered_is_removed_when_it_is_the_platforms_and_left_alone_when_it_is_not() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    world.until_idle().await;
    let platform = &done.platform_id;
    let entity = world.entries(platform, false).await[0].entity_id.clone();
    for (name, owner) in [
        ("by-hand", platform.as_str()),
        ("of-others", "somebody-else"),
    ] {
        let resource = ResourceRef {
            resource_type: ResourceType::Kv,
            name: name.to_owned(),
        };
        let request = CreateResource {
            resource,
            owner: owner.to_owned(),
            effect_key: name.to_owned(),
            config: json!({}),
        };
        world.local.create(&request).await.unwrap();
    }
    for cf_name in ["by-hand", "of-others", "Not A Name At All", "never-made"] {
        let new = NewResource {
            stack_id: None,
            resource_type: ResourceType::Kv,
            service_name: "extra".to_owned(),
            environment: Environment::Prod,
            cf_name: cf_name.to_owned(),
            cf_id: None,
            cf_url: None,
            provision_job_id: None,
            config: json!(null),
        };
        let cx: &Context = &world.cx;
        let entered = transact(world.store.as_ref(), |uow, _| {
            let (entity, new) = (&entity, new.clone());
            Box::pin(async move { create_resource(cx, uow, platform, entity, new).await })
        });
        entered.await.unwrap();
    }
    let job = deprovision(&world, platform, Environment::Prod).await;
    world.until_idle().await;
    assert_eq!(world.status(&job).await, JobStatus::Completed);
    assert!(world.things(platform).await.is_empty());
    assert!(world.entries(platform, false).await.is_empty());
    let left = world.local.inventory().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].0.name, "of-others");
}

#[tokio::test]
async fn a_platform_removed_while_it_is_being_made_leaves_nothing() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    hard_delete(&world, &done.platform_id).await;
    world.until_idle().await;
    assert!(world.things(&done.platform_id).await.is_empty());
    let mut uow = world.unit().await;
    assert!(
        uow.platforms()
            .get(done.platform_id.as_str())
            .await
            .unwrap()
            .is_none()
    );
    // The job that was to make it has failed instead of making it again.
    assert_eq!(world.status(&done.job_id).await, JobStatus::Failed);
}
