//! Job kinds in a process that knows them, and in one that does not.

use std::sync::Arc;

use core_domain::kernel::Error;
use core_domain::provisioning::{
    DeadLetter, DlqQuery, DlqStatus, FailureKind, JobEvent, JobEventQuery, JobStatus,
};
use core_domain::use_case::provisioning::{
    JobKind, KindError, Kinds, NoSupervisor, Outcome, Steps,
};

use super::audit::assert_invariants;
use crate::world::{Engine, Fault, JobCommand, MakeObject, Order, on_every_store, work_alone};

on_every_store! {
    Engine:
        an_unknown_kind_is_left_alone_until_its_deadline,
        a_job_of_an_unknown_kind_fails_15_minutes_after_its_deadline_and_frees_its_lane,
        a_running_job_is_recovered_only_by_a_process_that_knows_its_kind,
}

#[derive(Debug)]
struct Other<const STEPS: usize>;

impl<const STEPS: usize> JobKind for Other<STEPS> {
    const NAME: &'static str = "other";
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().steps([MakeObject("db"); STEPS])
    }
}

/// A kind with a name that is reserved for undoing the jobs of another kind.
#[derive(Debug)]
struct Undoer;

impl JobKind for Undoer {
    const NAME: &'static str = "work.undo";
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().step(MakeObject("db"))
    }
}

#[test]
fn a_kind_with_a_reserved_undo_name_is_refused() {
    for kinds in [Kinds::new(), work_alone()] {
        let reserved = kinds.with(Undoer).unwrap_err();
        assert_eq!(reserved, KindError::ReservedName(Undoer::NAME));
    }
}

#[test]
fn duplicate_names_of_kinds_and_steps_are_refused() {
    let kinds = Kinds::new().with(Other::<1>).unwrap();
    assert!(kinds.contains("other") && !kinds.contains("another"));
    let twice = kinds.with(Other::<1>).unwrap_err();
    assert_eq!(twice, KindError::DuplicateKind("other".into()));
    let (kind, step) = ("other", "db");
    let twice = Kinds::new().with(Other::<2>).unwrap_err();
    assert_eq!(twice, KindError::DuplicateStep { kind, step });
}

async fn an_unknown_kind_is_left_alone_until_its_deadline(world: Engine) {
    let id = world.create_removal(0).await;
    let stranger = world.worker_knowing(&Arc::new(work_alone()));
    assert!(stranger.claim(9).await.unwrap().is_empty());
    let before = world.job(&id).await;
    world.tick(24 * 3_600 + 1);
    assert_eq!(stranger.run_timers().await.unwrap().overdue, 0);
    assert_eq!(world.job(&id).await, before);
    assert_eq!(world.worker().run_timers().await.unwrap().overdue, 1);
    let job = world.job(&id).await;
    assert_eq!(job.failure_kind, Some(FailureKind::DeadlineExceeded));
    let pending = DlqQuery::with_status(Some(DlqStatus::Pending));
    assert_eq!(world.list::<DeadLetter>(pending).await.len(), 1);
    world.operate(JobCommand::Retry, &id).await.unwrap();
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Completed));
    assert_invariants(&world).await;
}

async fn a_job_of_an_unknown_kind_fails_15_minutes_after_its_deadline_and_frees_its_lane(
    world: Engine,
) {
    let id = world.create_removal(0).await;
    let stranger = world.worker_knowing(&Arc::new(work_alone()));
    world.tick(24 * 3_600 + 15 * 60);
    assert_eq!(stranger.run_timers().await.unwrap().overdue, 0);
    world.tick(1);
    assert_eq!(stranger.run_timers().await.unwrap().overdue, 1);
    let job = world.job(&id).await;
    assert_eq!(job.failure_kind, Some(FailureKind::DeadlineExceeded));
    let history: Vec<JobEvent> = world.list(JobEventQuery::After(id.clone(), 0)).await;
    let said = history.last().unwrap().reason.as_deref();
    assert_eq!(said, Some("not recorded: the kind is not known"));
    let next = world.create(0).await;
    assert_eq!(stranger.claim(9).await.unwrap()[0].job_id, next);
    assert_invariants(&world).await;
    world.operate(JobCommand::Retry, &id).await.unwrap();
    world.tick(31);
    world.until_idle().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    assert_invariants(&world).await;
}

async fn a_running_job_is_recovered_only_by_a_process_that_knows_its_kind(world: Engine) {
    let id = world.create_removal(0).await;
    let known = world.create(1).await;
    assert_eq!(world.worker().claim(9).await.unwrap().len(), 2);
    let stranger = world.worker_knowing(&Arc::new(work_alone()));
    assert_eq!(stranger.recover().await.unwrap(), 1);
    assert_eq!(world.status(&known).await, JobStatus::Queued);
    world.tick(31);
    assert_eq!(stranger.run_timers().await.unwrap().reaped, 0);
    assert_eq!(world.status(&id).await, JobStatus::Running);
    assert_invariants(&world).await;
    assert_eq!(world.worker().recover().await.unwrap(), 1);
    world.until_idle().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    assert_invariants(&world).await;
}

/// Commands that an operator cannot use in a process that does not know the kind, because a hook would be skipped.
#[tokio::test]
async fn commands_for_jobs_of_an_unknown_kind_are_refused_as_unavailable() {
    let world = Engine::memory().await;
    world.provider.script([Fault::Permanent]);
    let failed = world.create_removal(0).await;
    world.worker().run_one(&NoSupervisor).await.unwrap();
    let queued = world.create_removal(1).await;
    let knows = work_alone();
    for (command, job) in [
        (JobCommand::Retry, &failed),
        (JobCommand::ForceComplete, &failed),
        (JobCommand::ForceComplete, &queued),
        (JobCommand::Cancel, &queued),
    ] {
        let before = world.job(job).await;
        let refused = world.operate_knowing(&knows, command, job).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{command:?}");
        assert_eq!(world.job(job).await, before, "{command:?}");
    }
    let entry = world.job(&failed).await.dlq_entry_id.unwrap();
    let refused = world.replay(&knows, &entry).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    // A retry of a queued job runs no hook.
    let job = world
        .operate_knowing(&knows, JobCommand::Retry, &queued)
        .await;
    assert_eq!(job.unwrap().status, JobStatus::Queued);
    assert_invariants(&world).await;
}
