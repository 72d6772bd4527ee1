//! Onboarding: one job creates the organization, platform and tenant, and a second job in the platform's lane creates
//! the infrastructure.

use core_domain::access::{authorize_new_organization, authorize_session};
use core_domain::kernel::{Context, OrganizationName, Slug};
use core_domain::port::{Mode, transact};
use core_domain::provisioning::{JobStatus, LaneKey};
use core_domain::registry::{
    Onboarding, OnboardingStatus, OnboardingTier, Platform, PlatformQuery, StartOnboarding,
};
use core_domain::use_case::iam::session;
use core_domain::use_case::provisioning::NoSupervisor;
use core_domain::use_case::registry::onboarding;

use crate::world::{Platforms, on_every_store};

on_every_store! { Platforms: an_onboarding_ends_with_its_jobs }

pub(super) async fn start(world: &Platforms, cx: &Context) -> Onboarding {
    let wanted = &StartOnboarding {
        platform_name: OrganizationName::parse("Engines").unwrap(),
        slug: Slug::parse("engines").unwrap(),
        tier: OnboardingTier::Growth,
        stack_template_id: None,
        billing_email: None,
    };
    let started = transact(world.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let scope = &authorize_new_organization(cx, uow).await?;
            onboarding::start(cx, scope, uow, wanted.clone()).await
        })
    });
    started.await.unwrap().0.into_inner()
}

async fn onboarding_state(world: &Platforms, begun: &Onboarding) -> (OnboardingStatus, JobStatus) {
    let now: Onboarding = world.find(&begun.id).await.unwrap();
    (now.status, world.status(&begun.job_id).await)
}

/// Checks that the onboarding has completed, and that everything exists exactly once.
async fn ended_well(world: &Platforms, cx: &Context, begun: &Onboarding, context: &str) {
    let ended = (OnboardingStatus::Completed, JobStatus::Completed);
    assert_eq!(onboarding_state(world, begun).await, ended, "{context}");
    world.assert_six_objects(&begun.platform_id, context).await;
    let all = PlatformQuery::All { deleted: true };
    let platforms: Vec<Platform> = world.list(all).await;
    assert_eq!(platforms.len(), 1, "{context}");
    assert_eq!(platforms[0].id, begun.platform_id);
    assert_eq!(platforms[0].owner_user_id.as_ref(), cx.caller.user_id());
    // Infrastructure is created in the platform's own lane, so that a removal runs before or after all of it.
    let jobs = world.jobs().await;
    let mut lanes = jobs.iter().map(|job| &job.lane);
    assert!(lanes.any(|lane| *lane == LaneKey::platform(&begun.platform_id)));
    assert_eq!(jobs.len(), 2, "{context}");
    let session = &authorize_session(cx).unwrap();
    let mut uow = world.store.begin(Mode::Read).await.unwrap();
    let details = session::details(session, uow.as_mut()).await.unwrap();
    let active = details.unwrap().active.unwrap().organization;
    assert_eq!(active.platform_id.as_ref(), Some(&begun.platform_id));
}

async fn an_onboarding_ends_with_its_jobs(world: Platforms) {
    let cx = world.person().await;
    let begun = start(&world, &cx).await;
    let begins = (OnboardingStatus::Open, JobStatus::Queued);
    assert_eq!(onboarding_state(&world, &begun).await, begins);
    world.run_one().await;
    let worker = world.worker();
    let platforms = worker.claim(1).await.unwrap().remove(0);
    assert_eq!(onboarding_state(&world, &begun).await.1, JobStatus::Waiting);
    // The platform's own job ends, and the onboarding that waits for it continues at once.
    worker.run(&platforms, &NoSupervisor).await.unwrap();
    assert_eq!(onboarding_state(&world, &begun).await.1, JobStatus::Queued);
    world.until_idle().await;
    ended_well(&world, &cx, &begun, "no fault").await;
}

#[tokio::test]
async fn after_a_crash_anywhere_an_onboarding_creates_everything_once() {
    // The worker dies in the first job, and then in the job that the first one queued.
    for units in 1.. {
        let world = Platforms::memory().await;
        let cx = world.person().await;
        let begun = start(&world, &cx).await;
        let mut died = world.dies_after(units).await;
        let (onboarding, job) = onboarding_state(&world, &begun).await;
        let open = onboarding == OnboardingStatus::Open;
        assert_eq!(open, !job.is_terminal());
        world.worker().recover().await.unwrap();
        world.tick(2);
        died |= world.dies_after(units).await;
        world.restart().await;
        ended_well(&world, &cx, &begun, &format!("{units} units")).await;
        if !died {
            assert!(units > 14, "a run has only {units} units");
            break;
        }
    }
}

/// A platform that an operator hard-deletes during its onboarding leaves nothing behind, whichever of its jobs had run.
#[tokio::test]
async fn a_platform_removed_while_it_is_onboarded_leaves_nothing() {
    for jobs_run in 1..4 {
        let world = Platforms::memory().await;
        let begun = start(&world, &world.person().await).await;
        for _ in 0..jobs_run {
            world.run_one().await;
        }
        world.hard_delete(&begun.platform_id).await;
        world.until_idle().await;
        let context = format!("after {jobs_run} jobs");
        world
            .assert_nothing_left(&begun.platform_id, &context)
            .await;
        assert_ne!(
            onboarding_state(&world, &begun).await.0,
            OnboardingStatus::Open
        );
    }
}
