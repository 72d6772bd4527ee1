//! A cancelled onboarding keeps everything that others created on its platform.

use core_domain::kernel::{Environment, Line, Name, PlatformId, Slug};
use core_domain::provisioning::{Job, JobEvent, JobEventQuery, JobStatus, JobTransition};
use core_domain::registry::{
    ActivateFeature, CreateEntity, Entity, EntityQuery, EntityType, NewFeatureId, Onboarding,
    Platform, PlatformStatus,
};
use core_domain::use_case::registry::{entity, feature};

use super::onboarding::start;
use crate::world::{JobCommand, Platforms, as_operator, on_every_store};

on_every_store! { Platforms: a_cancelled_onboarding_keeps_a_platform_that_others_use }

/// A record that another user creates during the onboarding.
#[derive(Clone, Copy, Debug)]
enum Other {
    Entity,
    Feature,
    Environment,
}

async fn make(world: &Platforms, platform: &PlatformId, other: Other) {
    match other {
        Other::Entity => {
            let command = &CreateEntity {
                name: Name::parse("Shop").unwrap(),
                slug: Slug::parse("shop").unwrap(),
                entity_type: EntityType::Tenant,
                parent_id: None,
            };
            as_operator!(world, platform, |cx, scope, uow| entity::create(
                cx,
                scope,
                uow,
                command.clone()
            ));
        }
        Other::Feature => {
            let tenants: Vec<Entity> = world.list(EntityQuery::Tenants).await;
            let tenant = &tenants[0].id;
            let command = &ActivateFeature {
                feature_id: NewFeatureId::parse("search").unwrap(),
                version: Line::parse("1").unwrap(),
                environment: Environment::Prod,
                config: None,
            };
            as_operator!(world, platform, |cx, scope, uow| feature::activate(
                cx,
                scope,
                uow,
                tenant,
                command.clone()
            ));
        }
        Other::Environment => drop(world.provision(platform, Environment::Dev).await),
    }
}

/// Starts an onboarding and runs it until it waits for the infrastructure.
async fn start_and_run(world: &Platforms) -> Onboarding {
    let begun = start(world, &world.person().await).await;
    world.run_one().await;
    assert_eq!(world.status(&begun.job_id).await, JobStatus::Waiting);
    begun
}

async fn cancel_onboarding(world: &Platforms, onboarding: &Onboarding) -> Job {
    let job = &onboarding.job_id;
    world.operate(JobCommand::Cancel, job).await.unwrap();
    world.until_idle().await;
    let mut jobs = world.jobs().await;
    jobs.retain(|undo| undo.is_undo() && undo.parent_job_id.as_ref() == Some(job));
    jobs.swap_remove(0)
}

async fn status(world: &Platforms, onboarding: &Onboarding) -> PlatformStatus {
    let platform: Platform = world.find(&onboarding.platform_id).await.unwrap();
    platform.status
}

async fn assert_kept(world: &Platforms, other: Other) {
    let onboarding = start_and_run(world).await;
    let platform = &onboarding.platform_id;
    make(world, platform, other).await;
    let undo = cancel_onboarding(world, &onboarding).await;
    let context = format!("{other:?}: {undo:?}");
    assert_eq!(undo.status, JobStatus::Completed, "{context}");
    let left = undo.output.as_ref().unwrap()["platform"]["left"]
        .as_str()
        .unwrap_or_else(|| panic!("{context}"));
    let said = format!("the platform {platform} is in use: ");
    assert!(left.starts_with(&said), "{context}");
    let told = JobEventQuery::After(onboarding.job_id.clone(), 0);
    let told: Vec<JobEvent> = world.list(told).await;
    let told = told
        .iter()
        .find(|event| event.event_type == JobTransition::Undo.as_str());
    let reason = told.unwrap().reason.as_deref();
    assert_eq!(reason, Some(format!("left: {left}").as_str()), "{context}");
    assert_eq!(status(world, &onboarding).await, PlatformStatus::Active);
    // Pending jobs complete and no job removes anything.
    let jobs = world.jobs().await;
    assert!(
        jobs.iter().all(|job| job.kind != "platform.deprovision"),
        "{context}"
    );
    let made = match other {
        Other::Entity => 6,
        Other::Feature => 7,
        Other::Environment => 12,
    };
    assert_eq!(world.objects(platform).await.len(), made, "{context}");
    assert_eq!(world.entries(platform, false).await.len(), made);
}

async fn a_cancelled_onboarding_keeps_a_platform_that_others_use(world: Platforms) {
    assert_kept(&world, Other::Environment).await;
}

#[tokio::test]
async fn a_cancelled_onboarding_keeps_entities_and_features_of_others() {
    for other in [Other::Entity, Other::Feature] {
        assert_kept(&Platforms::memory().await, other).await;
    }
}

#[tokio::test]
async fn a_cancelled_onboarding_deletes_a_platform_that_no_one_else_uses() {
    let world = Platforms::memory().await;
    let onboarding = start_and_run(&world).await;
    let undo = cancel_onboarding(&world, &onboarding).await;
    assert_eq!(undo.status, JobStatus::Completed);
    let deleted = status(&world, &onboarding).await;
    assert_eq!(deleted, PlatformStatus::Deleted);
    let platform = &onboarding.platform_id;
    assert!(world.objects(platform).await.is_empty());
    assert!(world.entries(platform, false).await.is_empty());
    assert!(undo.steps[0].output.is_none(), "{undo:?}");
}
