//! The whole alphabet of commands in any order, against the table of moves, with the invariants asked after each.

use core_domain::kernel::{Error, JobId, Reason};
use core_domain::port::{Mode, transact};
use core_domain::provisioning::{
    DlqQuery, DlqStatus, Failure, HoldScope, HoldSource, JobError, JobStatus, MoveName, Report,
};
use core_domain::use_case::provisioning::{
    Claimed, Grip, Holder, cancel, force_complete, hold, release_hold, replay, report, retry,
    signal,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::audit::invariants_hold;
use super::world::{World, lane};

#[derive(Clone, Copy, Debug)]
enum Command {
    Create { lane: usize, front: bool },
    Claim,
    Heartbeat,
    Start(usize),
    Advance(usize),
    FailForNow(usize),
    FailForGood(usize),
    Wait(usize),
    Release(usize),
    Signal(usize),
    Sweep,
    Recover,
    Tick(u64),
    Retry(usize),
    Cancel(usize),
    Force(usize),
    Replay(usize),
    Hold(usize),
    Unhold(usize),
    HoldAll,
    UnholdAll,
}

fn command() -> impl Strategy<Value = Command> {
    let which = 0_usize..32;
    prop_oneof![
        3 => (0_usize..3, any::<bool>()).prop_map(|(lane, front)| Command::Create { lane, front }),
        6 => Just(Command::Claim),
        1 => Just(Command::Heartbeat),
        6 => which.clone().prop_map(Command::Start),
        6 => which.clone().prop_map(Command::Advance),
        3 => which.clone().prop_map(Command::FailForNow),
        1 => which.clone().prop_map(Command::FailForGood),
        1 => which.clone().prop_map(Command::Wait),
        1 => which.clone().prop_map(Command::Release),
        1 => which.clone().prop_map(Command::Signal),
        2 => Just(Command::Sweep),
        1 => Just(Command::Recover),
        3 => prop_oneof![0_u64..40, Just(90_000)].prop_map(Command::Tick),
        2 => which.clone().prop_map(Command::Retry),
        1 => which.clone().prop_map(Command::Cancel),
        1 => which.clone().prop_map(Command::Force),
        2 => which.prop_map(Command::Replay),
        1 => (0_usize..3).prop_map(Command::Hold),
        2 => (0_usize..3).prop_map(Command::Unhold),
        1 => Just(Command::HoldAll),
        2 => Just(Command::UnholdAll),
    ]
}

/// Every claim ever made stays here: most are stale, and a stale one must change nothing.
#[derive(Default)]
struct Run {
    jobs: Vec<JobId>,
    claims: Vec<Claimed>,
}

impl Run {
    fn job(&self, at: usize) -> Option<&JobId> {
        self.jobs.get(at % self.jobs.len().max(1))
    }

    /// Later claims are likelier, so that some of them are alive.
    fn claim(&self, at: usize) -> Option<&Claimed> {
        let back = at % 4 % self.claims.len().max(1);
        self.claims.iter().rev().nth(back)
    }

    async fn apply(&mut self, world: &World, command: Command) {
        match command {
            Command::Create { lane, front } => {
                let kind = if front {
                    "platform.deprovision"
                } else {
                    "work"
                };
                self.jobs.push(world.create(lane, kind, front).await);
            }
            Command::Claim => {
                let claimed = world.worker().claim(2).await.unwrap();
                for claim in &claimed {
                    let job = world.job(&claim.job_id).await;
                    assert_eq!((job.status, job.fence), (JobStatus::Running, claim.fence));
                }
                self.claims.extend(claimed);
            }
            Command::Heartbeat => {
                let lost = world.worker().heartbeat(&self.claims).await.unwrap();
                assert_eq!(lost, self.claims, "a heartbeat of another owner");
            }
            Command::Sweep => drop(world.worker().sweep().await.unwrap()),
            Command::Recover => {
                world.worker().recover().await.unwrap();
                let jobs = world.jobs().await;
                assert!(jobs.iter().all(|job| job.status != JobStatus::Running));
            }
            Command::Tick(seconds) => world.tick(seconds),
            Command::Hold(at) => set_hold(world, HoldScope::Lane(lane(at)), true).await,
            Command::Unhold(at) => set_hold(world, HoldScope::Lane(lane(at)), false).await,
            Command::HoldAll => set_hold(world, HoldScope::All, true).await,
            Command::UnholdAll => set_hold(world, HoldScope::All, false).await,
            Command::Replay(at) => replay_one(world, at).await,
            Command::Signal(at) | Command::Retry(at) | Command::Cancel(at) | Command::Force(at) => {
                if let Some(job) = self.job(at) {
                    operate(world, command, job).await;
                }
            }
            Command::Start(at)
            | Command::Advance(at)
            | Command::FailForNow(at)
            | Command::FailForGood(at)
            | Command::Wait(at)
            | Command::Release(at) => {
                if let Some(claim) = self.claim(at) {
                    work(world, command, claim).await;
                }
            }
        }
    }
}

async fn set_hold(world: &World, scope: HoldScope, on: bool) {
    transact(world.store.as_ref(), |uow, _| {
        let (scope, cx) = (scope.clone(), &world.operator);
        Box::pin(async move {
            if on {
                hold(cx, uow, scope, HoldSource::Operator, None).await
            } else {
                release_hold(uow, scope, HoldSource::Operator).await
            }
        })
    })
    .await
    .unwrap();
}

/// What an operator does works exactly from the statuses of the table.
async fn operate(world: &World, command: Command, id: &JobId) {
    let before = world.job(id).await;
    let (name, to) = match command {
        Command::Signal(_) => (MoveName::Wake, JobStatus::Queued),
        Command::Cancel(_) => (MoveName::Cancel, JobStatus::Failed),
        Command::Force(_) => (MoveName::ForceComplete, JobStatus::Completed),
        _ if before.status == JobStatus::Failed => (MoveName::Retry, JobStatus::Queued),
        _ => (MoveName::RunNow, JobStatus::Queued),
    };
    let reason = Reason::parse("because").unwrap();
    let outcome = transact(world.store.as_ref(), |uow, _| {
        let (cx, kinds, reason) = (&world.operator, world.kinds.as_ref(), &reason);
        Box::pin(async move {
            match command {
                Command::Signal(_) => signal(cx, uow, kinds, id).await,
                Command::Cancel(_) => cancel(cx, uow, kinds, id, Some(reason)).await,
                Command::Force(_) => force_complete(cx, uow, kinds, id).await,
                _ => retry(cx, uow, kinds, id).await,
            }
        })
    })
    .await;
    let after = world.job(id).await;
    if name.row().from.contains(&before.status) {
        assert_eq!(outcome.unwrap().status, to);
        assert_eq!((after.status, after.fence), (to, before.fence + 1));
    } else {
        assert!(
            matches!(outcome, Err(Error::InvalidState { .. })),
            "{command:?} {before:?}"
        );
        assert_eq!(after, before);
    }
}

async fn replay_one(world: &World, at: usize) {
    let mut uow = world.store.begin(Mode::Read).await.unwrap();
    let all = DlqQuery::WithStatus(None);
    let entries = uow.dlq_entries().list(&all, 100).await.unwrap();
    uow.rollback().await;
    let Some(entry) = entries.get(at % entries.len().max(1)) else {
        return;
    };
    let outcome = transact(world.store.as_ref(), |uow, _| {
        Box::pin(replay(&world.operator, uow, &world.kinds, &entry.id))
    })
    .await;
    if entry.status == DlqStatus::Pending {
        let job = outcome.unwrap();
        assert_eq!(
            (job.status, job.replay_count),
            (JobStatus::Queued, entry.replay_count + 1)
        );
    } else {
        assert_eq!(
            outcome.unwrap_err().code().as_str(),
            "DLQ_ENTRY_NOT_REPLAYABLE"
        );
    }
}

/// What a worker reports counts exactly while the fence is its own.
async fn work(world: &World, command: Command, claim: &Claimed) {
    let before = world.job(&claim.job_id).await;
    let holds = before.status == JobStatus::Running && before.fence == claim.fence;
    let step = before.current_step().unwrap_or(0);
    let error = JobError::new("TEST", "a test");
    let what = match command {
        Command::Start(_) => Report::Start(step),
        Command::Advance(_) => Report::Advance(step, json!({ "step": step })),
        Command::FailForNow(_) => Report::Fail(Failure::Transient {
            error,
            retry_after: std::time::Duration::ZERO,
            unknown: false,
        }),
        Command::FailForGood(_) => Report::Fail(Failure::Permanent(error)),
        Command::Wait(_) => Report::Wait {
            until: before.updated_at.plus(std::time::Duration::from_secs(60)),
            reason: "a certificate".into(),
        },
        _ => Report::Release,
    };
    let started = before.steps[step].status == core_domain::provisioning::StepStatus::Running;
    let outcome = transact(world.store.as_ref(), |uow, _| {
        let holder = Holder {
            owner: "tester",
            kinds: &world.kinds,
            claimed: claim,
        };
        Box::pin(report(&world.cx, uow, holder, what.clone()))
    })
    .await;
    let after = world.job(&claim.job_id).await;
    if !holds {
        assert!(matches!(outcome, Ok(Grip::Lost)), "{outcome:?}");
        assert_eq!(after, before, "I3: a stale fence wrote");
        return;
    }
    if matches!(command, Command::Advance(_)) && !started {
        assert!(outcome.is_err(), "advanced without an intent");
        assert_eq!(after, before);
        return;
    }
    assert!(matches!(outcome, Ok(Grip::Kept(_))), "{outcome:?}");
    let leaves = after.status != JobStatus::Running;
    assert_eq!(after.fence, before.fence + i64::from(leaves), "I2");
    if matches!(command, Command::Wait(_) | Command::Release(_)) {
        assert_eq!(after.attempts, before.attempts, "I14");
    }
}

/// Runs `cases` sequences, each in a world of its own made by `make`.
fn any_order_keeps_the_invariants<F>(cases: u32, longest: usize, make: F)
where
    F: AsyncFn() -> World,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let commands = prop::collection::vec(command(), 1..longest);
    TestRunner::new(config)
        .run(&commands, |commands| {
            runtime.block_on(async {
                let world = make().await;
                let mut run = Run::default();
                let mut fences = Vec::new();
                for command in commands {
                    run.apply(&world, command).await;
                    invariants_hold(&world).await;
                    let now = fences_of(&world, &run).await;
                    let known = fences.iter().zip(&now);
                    assert!(
                        known.clone().all(|(old, new)| old <= new),
                        "I2: a fence went back"
                    );
                    fences = now;
                }
                drop(world);
            });
            Ok(())
        })
        .unwrap();
}

async fn fences_of(world: &World, run: &Run) -> Vec<i64> {
    let mut fences = Vec::with_capacity(run.jobs.len());
    for id in &run.jobs {
        fences.push(world.job(id).await.fence);
    }
    fences
}

#[test]
fn any_order_of_commands_keeps_the_invariants_in_memory() {
    any_order_keeps_the_invariants(200, 60, async || World::memory());
}

#[test]
fn any_order_of_commands_keeps_the_invariants_on_sqlite() {
    any_order_keeps_the_invariants(8, 40, World::sqlite);
}

#[test]
fn any_order_of_commands_keeps_the_invariants_on_postgres() {
    any_order_keeps_the_invariants(4, 30, World::postgres);
}
