//! Deliberate defects, which the simulation must detect.

use core_domain::access::RecordKey;
use core_domain::kernel::{JobEventId, JobId, StoreError, Stored};
use core_domain::port::{Infrastructure, Mode, ObjectRequest, Persisted, ResourceRef, Within};
use core_domain::provisioning::{
    Actor, Job, JobEvent, JobLane, JobLease, JobLeaseQuery, JobStatus, JobTransition, Report,
    Trigger, apply, effect_key,
};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::{Claim, LeaseState, Worker};
use serde_json::json;

use crate::world::{Engine, Rng, STEPS};

/// A deliberate defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    None,
    /// Workers write without checking that they still hold the job.
    NoFence,
    /// The provider gets a new key with every request.
    NoKey,
    /// A reaper reads the jobs with expired leases, and writes the result of that stale read later.
    BlindReap,
}

/// Runs a job like a worker without fences: it uses the current fence of the job.
pub(super) async fn run_without_fence(world: &Engine, worker: &Worker, claimed: &Claim) {
    while let Some((step, name)) = open_step(world, &claimed.job_id).await {
        if !write_without_fence(world, worker, claimed, Report::Start(step)).await {
            return;
        }
        let resource = ResourceRef {
            resource_type: ResourceType::D1,
            name: format!("{}-{name}", claimed.job_id),
        };
        let there = world.provider.observe(&resource).await;
        if matches!(there, Ok(None)) {
            let request = ObjectRequest {
                resource,
                owner: "test".into(),
                effect_key: effect_key(&claimed.job_id, name),
                config: json!({}),
            };
            if world.provider.create(&request).await.is_err() {
                return;
            }
        }
        let output = json!({ "by": worker.owner() });
        if !write_without_fence(world, worker, claimed, Report::Advance(step, output)).await {
            return;
        }
    }
}

async fn read(world: &Engine, id: &JobId) -> Option<Job> {
    let mut uow = world.store.begin(Mode::Read).await.ok()?;
    let jobs = uow.repositories(RecordKey::for_tests()).jobs();
    let found = jobs.get(Within::Installation, id.as_str()).await;
    found.ok()?.map(Stored::into_inner)
}

async fn open_step(world: &Engine, id: &JobId) -> Option<(usize, &'static str)> {
    let job = read(world, id).await?;
    let step = job.current_step()?;
    (job.status == JobStatus::Running).then(|| (step, STEPS[step]))
}

async fn write_without_fence(
    world: &Engine,
    worker: &Worker,
    claimed: &Claim,
    what: Report,
) -> bool {
    let Some(job) = read(world, &claimed.job_id).await else {
        return false;
    };
    let current = Claim {
        fence: job.fence,
        ..claimed.clone()
    };
    let outcome = worker.report(&current, what).await;
    matches!(outcome, Ok(LeaseState::Held(_)))
}

/// Reaps jobs based on a stale read of the expired leases.
pub(super) async fn reap_blindly(world: &Engine, rng: &Rng) {
    let expired = list_expired_jobs(world).await.unwrap_or_default();
    rng.pause(8).await;
    for job in &expired {
        // If the store fails, the next run handles the job.
        let _ = write_reaped(world, job).await;
    }
}

async fn list_expired_jobs(world: &Engine) -> Result<Vec<Job>, StoreError> {
    let mut uow = world.store.begin(Mode::Read).await?;
    let ended = JobLeaseQuery::ExpiredAt(uow.now().await?);
    let leases = JobLease::repository(uow.repositories(RecordKey::for_tests()));
    let leases = leases.list(Within::Installation, &ended, 10).await?;
    let ids: Vec<&str> = leases.iter().map(|lease| lease.job_id.as_str()).collect();
    let jobs = Job::repository(uow.repositories(RecordKey::for_tests()));
    let jobs = jobs.get_many(Within::Installation, &ids).await?;
    Ok(jobs.into_iter().map(Stored::into_inner).collect())
}

/// Writes everything that a reaper writes, without checking the current state of the job.
async fn write_reaped(world: &Engine, read: &Job) -> Result<(), StoreError> {
    let mut uow = world.store.begin(Mode::Write).await?;
    let now = uow.now().await?;
    let Ok(moved) = apply(read, &Trigger::Reap, now, world.entropy.as_ref()) else {
        return Ok(());
    };
    // The last reap, with its dead letter, is left to the real timers.
    if moved.job.status != JobStatus::Queued {
        return Ok(());
    }
    let everywhere = Within::Installation;
    let lanes = JobLane::repository(uow.repositories(RecordKey::for_tests()));
    let Some(lane) = lanes.get(everywhere, read.lane.as_str()).await? else {
        return Ok(());
    };
    let mut next = (*lane).clone();
    next.update_job(Some(read), &moved.job, now);
    next.update_state(now);
    lanes.replace(&lane, next).await?;
    let jobs = Job::repository(uow.repositories(RecordKey::for_tests()));
    let Some(stored) = jobs.get(everywhere, read.id.as_str()).await? else {
        return Ok(());
    };
    let mut job = moved.job;
    job.event_count = stored.event_count + 1;
    let event = JobEvent {
        id: JobEventId::generate(now, world.entropy.as_ref()),
        job_id: job.id.clone(),
        seq: job.event_count,
        at: now,
        event_type: JobTransition::Reap.as_str().to_owned(),
        from_status: Some(JobStatus::Running),
        to_status: job.status,
        step: moved.step,
        fence: job.fence,
        actor: Actor::system(),
        reason: None,
        request_id: None,
    };
    jobs.replace(&stored, job).await?;
    let leases = JobLease::repository(uow.repositories(RecordKey::for_tests()));
    let of_job = JobLeaseQuery::OfJobs(vec![read.id.clone()]);
    leases.remove_all(everywhere, &of_job).await?;
    let events = JobEvent::repository(uow.repositories(RecordKey::for_tests()));
    events.insert(event).await?;
    uow.commit().await.map(drop)
}
