//! Onboarding: one job makes organization, platform, tenant and infrastructure.

use std::sync::Arc;

use core_domain::kernel::{Context, Name, Slug};
use core_domain::port::{Stored, transact};
use core_domain::provisioning::{Job, JobStatus};
use core_domain::registry::{Onboarding, OnboardingStatus, OnboardingTier, PlatformQuery};
use core_domain::use_case::iam::resolve_session_of;
use core_domain::use_case::provisioning::Unsupervised;
use core_domain::use_case::registry::{StartOnboarding, find_onboarding, start_onboarding};

use super::world::{Person, World};
use crate::dying_store::DyingStore;

async fn start(world: &World, person: &Person) -> (Context, Onboarding) {
    let cx = Context {
        caller: person.caller(),
        ..world.cx.clone()
    };
    let wanted = StartOnboarding {
        id: None,
        platform_name: Name::parse("Engines").unwrap(),
        slug: Slug::parse("engines").unwrap(),
        tier: OnboardingTier::Growth,
        stack_template_id: None,
        billing_email: None,
        user_id: Some(person.user_id.clone()),
        session_id: Some(person.session_id.clone()),
    };
    let started = transact(world.store.as_ref(), |uow, _| {
        Box::pin(start_onboarding(&cx, uow, wanted.clone()))
    });
    let (onboarding, _) = started.await.unwrap();
    (cx, onboarding.into_inner())
}

async fn status(
    world: &World,
    cx: &Context,
    begun: &Onboarding,
) -> (Stored<Onboarding>, Stored<Job>) {
    let mut uow = world.unit().await;
    find_onboarding(cx, uow.as_mut(), &begun.id).await.unwrap()
}

/// Everything that must be there once, and is.
async fn ended_well(
    world: &World,
    cx: &Context,
    person: &Person,
    begun: &Onboarding,
    context: &str,
) {
    let (onboarding, job) = status(world, cx, begun).await;
    assert_eq!(onboarding.status, OnboardingStatus::Completed, "{context}");
    assert_eq!(job.status, JobStatus::Completed, "{context}");
    world.has_exactly_six(&begun.platform_id, context).await;
    let mut uow = world.unit().await;
    let platforms = uow
        .platforms()
        .list(&PlatformQuery::All { deleted: true }, 10)
        .await
        .unwrap();
    assert_eq!(platforms.len(), 1, "{context}");
    assert_eq!(platforms[0].id, begun.platform_id);
    assert_eq!(platforms[0].owner_user_id.as_ref(), Some(&person.user_id));
    let session = resolve_session_of(uow.as_mut(), &person.session_id)
        .await
        .unwrap()
        .unwrap();
    let place = session.place.unwrap();
    assert_eq!(
        place.organization.platform_id.as_ref(),
        Some(&begun.platform_id),
        "{context}"
    );
}

async fn follows_its_job(world: World) {
    let person = world.person().await;
    let (cx, begun) = start(&world, &person).await;
    let (onboarding, job) = status(&world, &cx, &begun).await;
    assert_eq!(
        (onboarding.status, job.status),
        (OnboardingStatus::Open, JobStatus::Queued)
    );
    assert_eq!(job.progress().total_steps, 7);
    world.until_idle().await;
    ended_well(&world, &cx, &person, &begun, "no fault").await;
}

#[tokio::test]
async fn an_onboarding_ends_with_its_job_on_memory() {
    follows_its_job(World::memory().await).await;
}

#[tokio::test]
async fn an_onboarding_ends_with_its_job_on_sqlite() {
    follows_its_job(World::sqlite().await).await;
}

#[tokio::test]
async fn an_onboarding_ends_with_its_job_on_postgres() {
    follows_its_job(World::postgres().await).await;
}

#[tokio::test]
async fn wherever_the_worker_dies_an_onboarding_makes_everything_once() {
    let mut units = 1;
    loop {
        let mut world = World::memory().await;
        let person = world.person().await;
        let (cx, begun) = start(&world, &person).await;
        let alive = Arc::clone(&world.store);
        world.store = DyingStore::after(units, Arc::clone(&alive));
        let died = world.worker().run_one(&Unsupervised).await.is_err();
        world.store = alive;
        let (onboarding, job) = status(&world, &cx, &begun).await;
        assert_eq!(
            onboarding.status == OnboardingStatus::Open,
            !job.status.is_terminal()
        );
        world.worker().recover().await.unwrap();
        world.until_idle().await;
        ended_well(&world, &cx, &person, &begun, &format!("{units} units")).await;
        if !died {
            break;
        }
        units += 1;
    }
    assert!(units > 14, "a run has only {units} units");
}
