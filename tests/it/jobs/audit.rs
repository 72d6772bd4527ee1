//! The invariants, asked of the store: whatever happened before, they hold.

use std::collections::{BTreeMap, BTreeSet};

use core_domain::port::Mode;
use core_domain::provisioning::{
    DlqQuery, DlqStatus, JobEventQuery, JobLeaseQuery, JobStatus, MAX_ATTEMPTS, StepStatus,
};

use core_domain::provisioning::{JobEvent, MoveName};

use super::world::World;

/// I3: between a claim and the end of its hold no other worker writes. Asks the history, not the fences.
pub(super) fn written_by_holders<'e>(
    events: impl Iterator<Item = &'e JobEvent>,
) -> Result<(), String> {
    let mut holder = None;
    for event in events {
        if event.event_type == MoveName::Claim.as_str() {
            holder = Some(&event.actor);
        } else if event.from_status == Some(JobStatus::Running)
            && event.actor.kind == "worker"
            && holder != Some(&event.actor)
        {
            return Err(format!("I3 {holder:?} held the job: {event:?}"));
        }
        if event.to_status != JobStatus::Running {
            holder = None;
        }
    }
    Ok(())
}

/// Checks I1, I4, I6, I9, I10, I12, I13, I19 and the lanes; panics with what is broken.
pub(super) async fn invariants_hold(world: &World) {
    let mut uow = world.store.begin(Mode::Read).await.unwrap();
    let all = core_domain::provisioning::JobQuery::Of {
        platform_id: None,
        status: None,
    };
    let jobs = uow.jobs().list(&all, 10_000).await.unwrap();
    let leases = uow
        .job_leases()
        .list(&JobLeaseQuery::All, 10_000)
        .await
        .unwrap();
    let leases: BTreeMap<_, _> = leases.iter().map(|l| (l.job_id.clone(), l.fence)).collect();
    let entries = uow
        .dlq_entries()
        .list(&DlqQuery::WithStatus(None), 10_000)
        .await
        .unwrap();
    let mut running_lanes = BTreeSet::new();
    for job in &jobs {
        let running = job.status == JobStatus::Running;
        let lease = leases.get(&job.id).copied();
        assert_eq!(lease, running.then_some(job.fence), "I6 {job:?}");
        if running {
            assert!(
                running_lanes.insert(job.lane.clone()),
                "I4 two running: {:?}",
                job.lane
            );
        }
        assert!(job.attempts <= MAX_ATTEMPTS, "I13 {job:?}");
        assert_eq!(
            job.finished_at.is_some(),
            job.status.is_terminal(),
            "I19 {job:?}"
        );
        if job.status == JobStatus::Completed && !job.forced {
            assert!(
                job.steps.iter().all(|s| s.status == StepStatus::Succeeded),
                "I9 {job:?}"
            );
        }
        let first_open = job.current_step().unwrap_or(job.steps.len());
        assert!(
            job.steps[first_open..]
                .iter()
                .all(|s| s.status != StepStatus::Succeeded),
            "I7 {job:?}"
        );
        let of = |status| {
            let mine = entries
                .iter()
                .filter(|e| e.job_id == job.id && e.status == status);
            mine.count()
        };
        let stopped = job.status == JobStatus::Failed
            && job.failure_kind.is_some_and(|kind| kind.opens_dlq_entry());
        assert_eq!(
            of(DlqStatus::Pending),
            usize::from(stopped),
            "I10 {job:?} {entries:?}"
        );
        if of(DlqStatus::Replayed) > 0 {
            assert!(!job.status.is_terminal(), "I10 replayed and ended {job:?}");
        }
        let history = JobEventQuery::After(job.id.clone(), 0);
        let events = uow.job_events().list(&history, 10_000).await.unwrap();
        let mut status = None;
        for (at, event) in events.iter().enumerate() {
            assert_eq!(
                event.seq,
                i64::try_from(at).unwrap() + 1,
                "I12 gap {event:?}"
            );
            assert_eq!(event.from_status, status, "I12 {event:?}");
            status = Some(event.to_status);
        }
        assert_eq!(status, Some(job.status), "I12 {job:?}");
        let lane = uow
            .job_lanes()
            .get(job.lane.as_str())
            .await
            .unwrap()
            .unwrap();
        let queued = jobs
            .iter()
            .filter(|j| j.lane == job.lane && j.status == JobStatus::Queued);
        let head = queued.min_by_key(|j| j.lane_position).map(|j| j.id.clone());
        assert_eq!(lane.head_job_id, head, "head of {lane:?}");
        let runs = jobs
            .iter()
            .find(|j| j.lane == job.lane && j.status == JobStatus::Running);
        assert_eq!(
            lane.running_job_id,
            runs.map(|j| j.id.clone()),
            "runner of {lane:?}"
        );
    }
    assert!(leases.len() <= jobs.len(), "I6 a lease without a job");
    uow.rollback().await;
    // I8: one object for each effect key, whatever was repeated.
    for (name, keys) in world.provider.objects.lock().unwrap().iter() {
        assert_eq!(keys.len(), 1, "I8 {name} was made by {keys:?}");
    }
}
