//! Deprovisioning an environment, and removing a platform permanently.

use core_domain::kernel::{BoundedJson, EntityId, Environment, PlatformId};
use core_domain::port::{self, Infrastructure, ResourceRef};
use core_domain::provisioning::{DeadLetter, DlqQuery, FailureKind, JobStatus};
use core_domain::registry::{CreateResource, Platform, ProviderName, ResourceStatus, ResourceType};
use core_domain::use_case::registry::reconcile::{self, ReconcileCommand};
use core_domain::use_case::registry::resource;
use serde_json::json;

use crate::world::{JobCommand, Platforms, as_operator, on_every_store};

on_every_store! {
    Platforms:
        deprovisioning_removes_an_environment_and_leaves_the_others,
        removing_an_environment_during_a_platform_removal_removes_nothing_else,
}

async fn deprovisioning_removes_an_environment_and_leaves_the_others(world: Platforms) {
    let platform = &world.set_up("engines").await.platform_id;
    world.provision(platform, Environment::Dev).await;
    world.until_idle().await;
    assert_eq!(world.objects(platform).await.len(), 12);
    let job = world.deprovision(platform, Environment::Prod).await;
    world.until_idle().await;
    let job = world.job(&job).await;
    assert_eq!(job.status, JobStatus::Completed);
    let steps: Vec<&str> = job.steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        steps,
        ["hostnames", "pages", "worker", "queue", "r2", "kv", "d1"]
    );
    let objects = world.objects(platform).await;
    assert_eq!(objects.len(), 6);
    assert!(objects.iter().all(|name| name.contains("-dev-")));
    let active = world.entries(platform, false).await;
    assert!(active.len() == 6 && active.iter().all(|r| r.environment == Environment::Dev));
    let all = world.entries(platform, true).await;
    assert_eq!(all.len(), 12);
    let mut deleted = all.iter().filter(|r| r.environment == Environment::Prod);
    assert!(deleted.all(|r| r.status == ResourceStatus::Deleted && r.deleted_at.is_some()));
    // The platform still exists, and can be provisioned again.
    let again = world.provision(platform, Environment::Prod).await;
    world.until_idle().await;
    assert_eq!(world.status(&again).await, JobStatus::Completed);
    assert_eq!(world.objects(platform).await.len(), 12);
    assert_eq!(world.entries(platform, false).await.len(), 12);
}

/// Creates an object at the provider without a job.
async fn make_by_hand(world: &Platforms, name: &str, owner: &str) {
    let request = port::ObjectRequest {
        resource: ResourceRef {
            resource_type: ResourceType::Kv,
            name: name.to_owned(),
        },
        owner: owner.to_owned(),
        effect_key: name.to_owned(),
        config: json!({}),
    };
    world.provider.create(&request).await.unwrap();
}

/// Creates a record without a job.
async fn enter_by_hand(world: &Platforms, platform: &PlatformId, entity: &EntityId, name: &str) {
    let new = &CreateResource {
        stack_id: None,
        resource_type: ResourceType::Kv,
        service_name: ProviderName::parse("extra").unwrap(),
        environment: Environment::Prod,
        cf_name: ProviderName::parse(name).unwrap(),
        cf_id: None,
        cf_url: None,
        provision_job_id: None,
        config: BoundedJson::default(),
    };
    as_operator!(world, platform, |cx, scope, uow| resource::create(
        cx,
        scope,
        uow,
        entity,
        new.clone()
    ));
}

#[tokio::test]
async fn objects_recorded_by_hand_are_removed_only_if_the_platform_owns_them() {
    let world = Platforms::memory().await;
    let platform = &world.complete().await;
    let entity = world.entries(platform, false).await[0].entity_id.clone();
    make_by_hand(&world, "by-hand", platform.as_str()).await;
    make_by_hand(&world, "of-others", "somebody-else").await;
    for name in ["by-hand", "of-others", "never-made"] {
        enter_by_hand(&world, platform, &entity, name).await;
    }
    let job = world.deprovision(platform, Environment::Prod).await;
    world.until_idle().await;
    assert_eq!(world.status(&job).await, JobStatus::Completed);
    assert!(world.objects(platform).await.is_empty());
    assert!(world.entries(platform, false).await.is_empty());
    let left = world.provider.inventory().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].0.name, "of-others");
}

/// A retried removal of one environment covers only that environment. The platform waits for the removal of everything.
async fn removing_an_environment_during_a_platform_removal_removes_nothing_else(world: Platforms) {
    let platform = &world.set_up("engines").await.platform_id;
    world.provision(platform, Environment::Dev).await;
    world.until_idle().await;
    let entity = world.entries(platform, false).await[0].entity_id.clone();
    make_by_hand(&world, "by-hand", platform.as_str()).await;
    enter_by_hand(&world, platform, &entity, "by-hand").await;
    let of_dev = world.deprovision(platform, Environment::Dev).await;
    world.hard_delete(platform).await;
    world.operate(JobCommand::Retry, &of_dev).await.unwrap();
    world.run_one().await;
    assert_eq!(world.status(&of_dev).await, JobStatus::Completed);
    assert!(world.find::<Platform>(platform).await.unwrap().purging);
    assert_eq!(world.entries(platform, false).await.len(), 7);
    assert_eq!(world.objects(platform).await.len(), 7);
    world.until_idle().await;
    world.assert_nothing_left(platform, "removed").await;
}

#[tokio::test]
async fn a_force_completed_removal_purges_nothing_and_can_be_repeated() {
    let world = Platforms::memory().await;
    let platform = &world.complete().await;
    world.hard_delete(platform).await;
    let removal = world.jobs().await.remove(0).id;
    world
        .operate(JobCommand::ForceComplete, &removal)
        .await
        .unwrap();
    assert!(world.find::<Platform>(platform).await.unwrap().purging);
    world.assert_six_objects(platform, "force-completed").await;
    world.hard_delete(platform).await;
    world.until_idle().await;
    world.assert_nothing_left(platform, "removed again").await;
}

#[tokio::test]
async fn a_removal_cancels_other_jobs_without_dead_letters() {
    let world = Platforms::memory().await;
    let done = world.set_up("engines").await;
    let held = world.worker().claim(1).await.unwrap();
    assert_eq!(held[0].job_id, done.job_id);
    let waiting = world.provision(&done.platform_id, Environment::Dev).await;
    world.hard_delete(&done.platform_id).await;
    world.until_idle().await;
    world
        .assert_nothing_left(&done.platform_id, "removed")
        .await;
    for job in [&done.job_id, &waiting] {
        let job = world.job(job).await;
        let ended = (job.status, job.failure_kind);
        assert_eq!(ended, (JobStatus::Failed, Some(FailureKind::Cancelled)));
        assert!(job.reason.unwrap().contains("removed for good"));
    }
    let letters = DlqQuery::with_status(None);
    assert!(world.list::<DeadLetter>(letters).await.is_empty());
}

#[tokio::test]
async fn repairing_an_environment_keeps_objects_of_another_with_similar_names() {
    let world = Platforms::memory().await;
    let platform = &world.set_up("acme-dev").await.platform_id;
    world.until_idle().await;
    let before = world.objects(platform).await;
    assert_eq!(before.len(), 6);
    let command = &ReconcileCommand {
        platform_id: platform.clone(),
        environment: Some(Environment::Dev),
        repair: true,
        delete_data: true,
    };
    as_operator!(world, platform, |cx, scope, uow| reconcile::reconcile(
        cx,
        scope,
        uow,
        command.clone()
    ));
    world.until_idle().await;
    assert_eq!(world.objects(platform).await, before);
    world.assert_six_objects(platform, "after the repair").await;
}

/// A store that existed before a job is not removed by its undo, whether the registry knows it or not.
#[tokio::test]
async fn objects_that_existed_before_a_cancelled_job_remain() {
    for forgotten in [false, true] {
        let world = Platforms::memory().await;
        let platform = &world.complete().await;
        let before = world.objects(platform).await;
        if forgotten {
            for entry in world.entries(platform, false).await {
                let id = &entry.id;
                as_operator!(world, platform, |cx, scope, uow| resource::delete(
                    cx, scope, uow, id
                ));
            }
        }
        world.tick(1);
        let job = world.provision(platform, Environment::Prod).await;
        // The worker dies in the middle of the steps.
        assert!(world.dies_after(6).await);
        world.worker().recover().await.unwrap();
        world.operate(JobCommand::Cancel, &job).await.unwrap();
        world.until_idle().await;
        assert_eq!(world.objects(platform).await, before, "{forgotten}");
    }
}

/// One unit of work cancels at most a hundred jobs.
#[tokio::test]
async fn a_removal_cancels_many_jobs_in_batches() {
    let world = Platforms::memory().await;
    let platform = &world.complete().await;
    for _ in 0..250 {
        world.provision(platform, Environment::Prod).await;
    }
    let cancelled = async || {
        let jobs = world.jobs().await.into_iter();
        let is_cancelled =
            |job: &core_domain::provisioning::Job| job.failure_kind == Some(FailureKind::Cancelled);
        jobs.filter(is_cancelled).count()
    };
    world.hard_delete(platform).await;
    let mut so_far = vec![cancelled().await];
    for _ in 0..3 {
        world.run_one().await;
        so_far.push(cancelled().await);
    }
    assert_eq!(so_far, [100, 200, 250, 250]);
    world.until_idle().await;
    world.assert_nothing_left(platform, "removed").await;
}
