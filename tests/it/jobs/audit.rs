//! Checks the invariants of the job engine in a store. They hold after any sequence of operations. Each invariant is
//! also tested in these tests:
//!
//! | invariant | tests in this folder |
//! |---|---|
//! | I1 only allowed transitions | `model`, `search`; `provisioning/moves.rs` |
//! | I2 fences grow | `model`, `search`, `simulation` |
//! | I3 only the holder writes | `written_by_holders`, `model`, `search`, `simulation` |
//! | I4 one running job per lane, in order | here, `search`, `batches`, `races` |
//! | I5 no job is lost, all end | `simulation`, `crash`, `undo` |
//! | I6 a job has a lease exactly while it runs | here, after every command of `model` |
//! | I7 a done step stays done, unless undone | here, `search`, `simulation`, `crash`, `undo` |
//! | I8 one object per key | `search`, `simulation`, `engine`, `crash` |
//! | I9 a completed job has done all steps | here, `search`, `simulation` |
//! | I10 one dead letter per stopped job | here, after every command of `model` |
//! | I11 one of several replays succeeds | `promises::only_one_of_several_concurrent_replays_succeeds` |
//! | I12 the history gives the status | here, after every command of `model` |
//! | I13 attempts and pauses are bounded | here, `search`, `engine`; `provisioning/backoff.rs` |
//! | I14 a release costs no attempt, a lost lease one | `model`, `engine`, `unfinished` |
//! | I15 queueing is part of its unit | `promises::a_rolled_back_unit_leaves_no_job_and_an_unchanged_lane` |
//! | I16 one key is one job | `promises::concurrent_requests_with_one_key_create_one_job`, `batches` |
//! | I17 held jobs are not claimed | `promises::no_claim_begins_after_a_hold_is_set`, `model`, `search`, `simulation` |
//! | I18 lanes take turns | `promises::lanes_take_turns`, `batches`, `races`, `unfinished` |
//! | I19 ended jobs have an end time and are not claimed | here, `search`, `promises::an_ended_job_is_never_claimed` |
//! | I20 pages under inserts | `promises::paging_through_the_jobs_returns_each_once_while_others_are_queued` |

use std::collections::{BTreeMap, BTreeSet};

use core_domain::port::{Mode, Store, UnitOfWork};
use core_domain::provisioning::{
    DeadLetter, DlqQuery, DlqStatus, FailureKind, HoldScope, HoldSource, Job, JobEvent,
    JobEventQuery, JobHold, JobHoldQuery, JobLane, JobLease, JobLeaseQuery, JobStatus,
    JobTransition, LaneKey, LaneState, MAX_ATTEMPTS, QueuedJob, StepStatus,
};
use core_domain::shared::{AuditEntry, AuditQuery};
use core_domain::use_case::provisioning::JobKind;

use crate::world::{ALL_JOBS, Engine, Plain, Undoable, find, list};

/// I3: between a claim and the end of its lease no other worker writes. Checks the history, not the fences.
pub(super) fn written_by_holders(events: &[JobEvent]) -> Result<(), String> {
    let mut holder = None;
    for event in events {
        if event.event_type == JobTransition::Claim.as_str() {
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

/// Checks I1, I4, I6 to I10, I12, I13, I19 and the lanes. Panics with the violation.
pub(crate) async fn assert_invariants(world: &Engine) {
    let mut uow = world.store.begin(Mode::Read).await.unwrap();
    let trace: Vec<AuditEntry> = list(uow.as_mut(), AuditQuery::default()).await;
    for (job, events) in consistent_jobs(uow.as_mut()).await {
        if job.kind != Plain::NAME && !job.is_undo() {
            assert_hooks_ran(&job, &events, &trace);
        }
    }
    uow.rollback().await;
    assert_eq!(world.provider.check_unique(), Ok(()));
}

/// Checks the same as [`assert_invariants`], and I3, in a store that other processes have used.
pub(crate) async fn assert_records_consistent(store: &dyn Store) {
    let mut uow = store.begin(Mode::Read).await.unwrap();
    for (_, events) in consistent_jobs(uow.as_mut()).await {
        assert_eq!(written_by_holders(&events), Ok(()));
    }
    uow.rollback().await;
}

/// Checks the invariants of all jobs. Returns the jobs with their histories.
async fn consistent_jobs(uow: &mut dyn UnitOfWork) -> Vec<(Job, Vec<JobEvent>)> {
    let jobs: Vec<Job> = list(uow, ALL_JOBS).await;
    let leases: Vec<JobLease> = list(uow, JobLeaseQuery::All).await;
    let leases: BTreeMap<_, _> = leases.into_iter().map(|l| (l.job_id, l.fence)).collect();
    assert!(leases.len() <= jobs.len(), "I6 a lease without a job");
    let entries: Vec<DeadLetter> = list(uow, DlqQuery::with_status(None)).await;
    let undos: Vec<&Job> = jobs.iter().filter(|job| job.is_undo()).collect();
    let mut running_lanes = BTreeSet::new();
    let mut histories = Vec::with_capacity(jobs.len());
    for job in &jobs {
        let running = job.status == JobStatus::Running;
        let lease = leases.get(&job.id).copied();
        assert_eq!(lease, running.then_some(job.fence), "I6 {job:?}");
        let alone = !running || running_lanes.insert(&job.lane);
        assert!(alone, "I4 two running: {job:?}");
        assert_consistent(job);
        assert_single_undo(job, &undos);
        assert_dead_letter(job, &entries);
        let history = JobEventQuery::After(job.id.clone(), 0);
        let events: Vec<JobEvent> = list(uow, history).await;
        assert_history(job, &events);
        histories.push(events);
    }
    let lanes: BTreeSet<&LaneKey> = jobs.iter().map(|job| &job.lane).collect();
    for key in lanes {
        let lane: JobLane = find(uow, key.as_str()).await.unwrap();
        let on_lane = JobHoldQuery::On(vec![HoldScope::Lane(key.clone())]);
        let holds: Vec<JobHold> = list(uow, on_lane).await;
        assert_lane_matches_jobs(&lane, &jobs, &holds);
    }
    jobs.into_iter().zip(histories).collect()
}

fn assert_consistent(job: &Job) {
    assert!(job.attempts <= MAX_ATTEMPTS, "I13 {job:?}");
    let ended = job.status.is_terminal();
    assert_eq!(job.finished_at.is_some(), ended, "I19 {job:?}");
    let succeeded = |at: usize| job.steps[at].status == StepStatus::Succeeded;
    if job.status == JobStatus::Completed && !job.forced {
        assert!((0..job.steps.len()).all(succeeded), "I9 {job:?}");
    }
    let first_open = job.current_step().unwrap_or(job.steps.len());
    // An undo leaves gaps where a step cannot be undone.
    let gapless = job.kind == Undoable::NAME || !(first_open..job.steps.len()).any(succeeded);
    assert!(gapless, "I7 {job:?}");
}

/// Checks that a job that is being undone does not change, and that only one job undoes it.
fn assert_single_undo(job: &Job, undos: &[&Job]) {
    let own = |undo: &&&Job| undo.parent_job_id.as_ref() == Some(&job.id);
    let mut undoing = undos
        .iter()
        .filter(own)
        .filter(|undo| !undo.status.is_terminal());
    if undoing.next().is_some() {
        assert_eq!(
            job.failure_kind,
            Some(FailureKind::Cancelled),
            "undone {job:?}"
        );
        assert!(undoing.next().is_none(), "undone twice at once: {job:?}");
    }
}

fn assert_dead_letter(job: &Job, entries: &[DeadLetter]) {
    let of = |status| {
        let own = entries.iter().filter(|entry| entry.job_id == job.id);
        own.filter(|entry| entry.status == status).count()
    };
    let failed = job.status == JobStatus::Failed;
    let stopped = failed
        && job
            .failure_kind
            .is_some_and(|kind| kind.opens_dead_letter());
    assert_eq!(of(DlqStatus::Pending), usize::from(stopped), "I10 {job:?}");
    if of(DlqStatus::Replayed) > 0 {
        assert!(!job.status.is_terminal(), "I10 replayed and ended {job:?}");
    }
}

fn assert_history(job: &Job, events: &[JobEvent]) {
    let mut status = None;
    for (seq, event) in (1..).zip(events) {
        assert_eq!(event.seq, seq, "I12 gap {event:?}");
        assert_eq!(event.from_status, status, "I12 {event:?}");
        status = Some(event.to_status);
    }
    assert_eq!(status, Some(job.status), "I12 {job:?}");
}

/// The reason in the history of a job that ended in a process which did not know its kind.
const WITHOUT_HOOKS: &str = "not recorded: the kind is not known";

/// Checks that every transition with a hook ran it once, unless the history states otherwise, and that every done step
/// was recorded once.
fn assert_hooks_ran(job: &Job, events: &[JobEvent], trace: &[AuditEntry]) {
    let ran = |hook: &str| {
        let own = trace.iter().filter(|entry| entry.action == hook);
        own.filter(|entry| entry.entity_id == job.id.as_str())
            .count()
    };
    let moved = |from: fn(JobStatus) -> bool, to| {
        let into = events.iter().filter(|event| event.to_status == to);
        let into = into.filter(|event| event.reason.as_deref() != Some(WITHOUT_HOOKS));
        into.filter(|event| event.from_status.is_some_and(from))
            .count()
    };
    let completed = moved(|from| from != JobStatus::Completed, JobStatus::Completed);
    let failed = moved(|from| from != JobStatus::Failed, JobStatus::Failed);
    let resumed = moved(|from| from == JobStatus::Failed, JobStatus::Queued);
    let count = |moves: &[JobTransition]| {
        let of_step = events.iter().filter(|event| event.step.is_some());
        let names = of_step.map(|event| event.event_type.as_str());
        names
            .filter(|name| moves.iter().any(|by| by.as_str() == *name))
            .count()
    };
    let recorded = count(&[JobTransition::Advance, JobTransition::Complete]);
    let undone = count(&[JobTransition::Undo]);
    assert_eq!(
        [ran("hook.recorded"), ran("hook.undone")],
        [recorded, undone],
        "steps of {job:?}"
    );
    if job.kind != Undoable::NAME {
        let ran = ["completed", "failed", "resumed"].map(|hook| ran(&format!("hook.{hook}")));
        assert_eq!(ran, [completed, failed, resumed], "hooks of {job:?}");
    }
}

fn assert_lane_matches_jobs(lane: &JobLane, jobs: &[Job], holds: &[JobHold]) {
    let own = |status| {
        let own = jobs.iter().filter(|job| job.lane == lane.lane);
        own.filter(move |job| job.status == status)
    };
    let mut queued: Vec<QueuedJob> = own(JobStatus::Queued).map(QueuedJob::from).collect();
    queued.sort_by_key(|job| job.position);
    let count = i64::try_from(queued.len()).unwrap();
    assert_eq!(lane.queued, count, "queue of {lane:?}");
    assert!(
        queued.starts_with(&lane.cached_jobs),
        "next of {lane:?}: {queued:?}"
    );
    assert_eq!(lane.head(), queued.first(), "head of {lane:?}");
    let runs = own(JobStatus::Running).next().map(|job| job.id.clone());
    assert_eq!(lane.running_job_id, runs, "runner of {lane:?}");
    let on_lane = HoldScope::Lane(lane.lane.clone());
    let on_lane = holds.iter().filter(|hold| hold.scope == on_lane);
    let sources: Vec<HoldSource> = on_lane.map(|hold| hold.source).collect();
    assert_eq!(lane.held_by, sources, "holds of {lane:?}");
    let free = |head: &QueuedJob| {
        let held = holds.iter().any(|hold| hold.holds(&lane.lane, &head.kind));
        runs.is_none() && !held
    };
    let claimable = lane.state != LaneState::Idle;
    assert_eq!(claimable, lane.head().is_some_and(free), "{lane:?}");
}
