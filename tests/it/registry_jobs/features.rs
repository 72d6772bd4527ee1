//! Features: despite crashes and lost replies a feature is created once, and removed completely.

use core_domain::kernel::{EntityId, Environment, Line, PlatformId};
use core_domain::port::{Persisted, Within, transact};
use core_domain::provisioning::JobStatus;
use core_domain::registry::{
    ActivateFeature, Build, BuildQuery, BuildStatus, DeactivateFeature, FeatureActivation,
    FeatureActivationQuery, FeatureId, FeatureStatus, NewFeatureId, Platform,
};
use core_domain::testing::RecordKey;
use core_domain::use_case::provisioning::NoSupervisor;
use core_domain::use_case::registry::feature;
use core_local::FaultMoment;

use crate::world::{JobCommand, Platforms, as_operator};

fn search() -> FeatureId {
    FeatureId::parse("search").unwrap()
}

async fn activate(world: &Platforms, platform: &PlatformId) {
    let (entity, command) = (
        &owner_of_all(world, platform).await,
        &ActivateFeature {
            feature_id: NewFeatureId::parse("search").unwrap(),
            version: Line::parse("1.0.0").unwrap(),
            environment: Environment::Prod,
            config: None,
        },
    );
    as_operator!(world, platform, |cx, scope, uow| feature::activate(
        cx,
        scope,
        uow,
        entity,
        command.clone()
    ));
}

async fn deactivate(world: &Platforms, platform: &PlatformId) {
    let (entity, command) = (
        &owner_of_all(world, platform).await,
        &DeactivateFeature {
            feature_id: search(),
            environment: Environment::Prod,
        },
    );
    as_operator!(world, platform, |cx, scope, uow| feature::deactivate(
        cx,
        scope,
        uow,
        entity,
        command.clone()
    ));
}

/// Returns the entity that owns the platform's resources.
async fn owner_of_all(world: &Platforms, platform: &PlatformId) -> EntityId {
    world
        .entries(platform, false)
        .await
        .swap_remove(0)
        .entity_id
}

/// Checks that the feature, its worker and the worker's record exist once, or do not exist, besides the platform's own
/// six.
async fn assert_feature(
    world: &Platforms,
    platform: &PlatformId,
    status: FeatureStatus,
    context: &str,
) {
    let all = FeatureActivationQuery::OfPlatform {
        environment: None,
        inactive: true,
    };
    let features: Vec<FeatureActivation> = world.list(all).await;
    assert_eq!(features.len(), 1, "{context}");
    assert_eq!(features[0].status, status, "{context}");
    let builds: Vec<Build> = world.list(BuildQuery::All).await;
    let seen: Vec<BuildStatus> = builds.iter().map(|build| build.build_status).collect();
    assert_eq!(seen, [BuildStatus::Success], "{context}");
    let expected = 6 + usize::from(status == FeatureStatus::Active);
    let objects = world.objects(platform).await;
    let entries = world.entries(platform, false).await;
    assert_eq!(
        (objects.len(), entries.len()),
        (expected, expected),
        "{context}"
    );
    assert!(
        entries
            .iter()
            .all(|entry| objects.contains(entry.cf_name.as_str()))
    );
}

#[tokio::test]
async fn after_a_crash_anywhere_a_feature_is_created_once_and_removed() {
    for units in 1.. {
        let world = Platforms::memory().await;
        let platform = &world.complete().await;
        let context = &format!("{units} units");
        activate(&world, platform).await;
        let mut died = world.dies_after(units).await;
        world.restart().await;
        assert_feature(&world, platform, FeatureStatus::Active, context).await;
        deactivate(&world, platform).await;
        died |= world.dies_after(units).await;
        world.restart().await;
        assert_feature(&world, platform, FeatureStatus::Inactive, context).await;
        if !died {
            assert!(units > 3, "a run has only {context}");
            return;
        }
    }
}

#[tokio::test]
async fn any_one_call_of_the_store_may_fail_while_a_feature_is_created() {
    for call in 1.. {
        let (world, store) = Platforms::faulty().await;
        let platform = &world.complete().await;
        activate(&world, platform).await;
        store.fail_call(call);
        // The failure ends the work on the job; the checks below read its state.
        let _ = world.worker().run_one(&NoSupervisor).await;
        if !store.has_failed() {
            assert!(call > 30, "a run has only {call} calls");
            return;
        }
        world.restart().await;
        let context = format!("call {call}");
        assert_feature(&world, platform, FeatureStatus::Active, &context).await;
    }
}

#[tokio::test]
async fn a_provider_that_does_not_reply_creates_no_feature_twice_and_keeps_none() {
    for moment in [FaultMoment::Before, FaultMoment::Done] {
        let world = Platforms::memory().await;
        let platform = &world.complete().await;
        let context = &format!("{moment:?}");
        activate(&world, platform).await;
        world.leave_unanswered("create", 0, moment);
        world.until_idle().await;
        assert!(world.has_failed(), "{context} was not met");
        assert_feature(&world, platform, FeatureStatus::Active, context).await;
        deactivate(&world, platform).await;
        world.leave_unanswered("remove", 0, moment);
        world.until_idle().await;
        assert!(world.has_failed(), "{context} was not met");
        assert_feature(&world, platform, FeatureStatus::Inactive, context).await;
    }
}

#[tokio::test]
async fn an_undo_removes_the_worker_of_a_platform_that_no_longer_exists() {
    for units in 1.. {
        let world = Platforms::memory().await;
        let platform = &world.complete().await;
        let before = world.objects(platform).await;
        activate(&world, platform).await;
        assert!(
            world.dies_after(units).await,
            "no run ends after the worker was created"
        );
        if world.objects(platform).await == before {
            continue;
        }
        let jobs = world.jobs().await;
        let job = jobs.iter().find(|job| !job.status.is_terminal()).unwrap();
        remove_record(&world, platform).await;
        world.worker().recover().await.unwrap();
        world.operate(JobCommand::Cancel, &job.id).await.unwrap();
        world.until_idle().await;
        assert_eq!(world.status(&job.id).await, JobStatus::Failed);
        assert_eq!(world.objects(platform).await, before);
        return;
    }
}

/// Removes the record of a platform, in a way that no use case does.
async fn remove_record(world: &Platforms, platform: &PlatformId) {
    let removed = transact(world.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let platforms = Platform::repository(uow.repositories(RecordKey::for_tests()));
            let seen = platforms
                .get(Within::Installation, platform.as_str())
                .await?;
            Ok(platforms.remove(&seen.unwrap()).await?)
        })
    });
    removed.await.unwrap();
}
