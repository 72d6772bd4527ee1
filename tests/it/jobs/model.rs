//! Random sequences of all commands, compared with the table of transitions. The invariants are checked after each
//! command. On a database the same commands also run in memory, and must lead to the same jobs.

use core_domain::kernel::{Error, JobId, Machine};
use core_domain::provisioning::{
    DeadLetter, DlqQuery, DlqStatus, Failure, FailureKind, FirstObservation, HoldScope, Job,
    JobError, JobStatus, JobTransition, Report, StepStatus,
};
use core_domain::testing;
use core_domain::use_case::provisioning::{Claim, JobKind, LeaseState};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::audit::assert_invariants;
use crate::world::{Backend, Engine, JobCommand, Undoable, lane, work_alone};

/// The report of a worker about a job that it holds, or held.
#[derive(Clone, Copy, Debug)]
enum Work {
    Start,
    /// The first observation of the step.
    Look(FirstObservation),
    Advance,
    /// The end of a step whose reply is lost, so that it is reported again.
    AdvanceTwice,
    FailForNow,
    FailForGood,
    Wait,
    /// A part of the step is done.
    Progress,
    Release,
    /// The process stops before the step has started to change anything.
    HandBack,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Work,
    Removal,
    Plain,
    Undoable,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Create {
        lane: usize,
        kind: Kind,
    },
    Claim,
    /// A claim whose reply is lost. No worker knows of it until its lease expires.
    LoseClaim,
    /// The worker dies, and all its claims are lost.
    Crash,
    Heartbeat,
    Work(Work, usize),
    RunTimers,
    Recover,
    Tick(u64),
    /// A command of an operator. The flag states whether the process knows every kind.
    Operate(JobCommand, usize, bool),
    Replay(usize),
    Hold(usize, bool),
    HoldAll(bool),
    HoldKind(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0_usize..32;
    let kind = prop_oneof![
        2 => Just(Kind::Work),
        1 => Just(Kind::Removal),
        1 => Just(Kind::Plain),
        4 => Just(Kind::Undoable),
    ];
    let work = prop_oneof![
        6 => Just(Work::Start),
        1 => Just(Work::Look(FirstObservation::Absent)),
        1 => Just(Work::Look(FirstObservation::Present)),
        6 => Just(Work::Advance),
        2 => Just(Work::AdvanceTwice),
        3 => Just(Work::FailForNow),
        1 => Just(Work::FailForGood),
        1 => Just(Work::Wait),
        1 => Just(Work::Progress),
        1 => Just(Work::Release),
        1 => Just(Work::HandBack),
    ];
    let command = prop_oneof![
        2 => Just(JobCommand::Retry),
        2 => Just(JobCommand::Cancel),
        1 => Just(JobCommand::ForceComplete),
        1 => Just(JobCommand::Signal),
    ];
    prop_oneof![
        3 => (0_usize..3, kind).prop_map(|(lane, kind)| Step::Create { lane, kind }),
        6 => Just(Step::Claim),
        1 => Just(Step::LoseClaim),
        1 => Just(Step::Crash),
        1 => Just(Step::Heartbeat),
        18 => (work, which()).prop_map(|(work, at)| Step::Work(work, at)),
        2 => Just(Step::RunTimers),
        1 => Just(Step::Recover),
        3 => prop_oneof![0_u64..40, Just(90_000)].prop_map(Step::Tick),
        5 => (command, which(), prop::bool::weighted(0.8))
            .prop_map(|(command, at, knows)| Step::Operate(command, at, knows)),
        2 => which().prop_map(Step::Replay),
        3 => (0_usize..3, prop::bool::weighted(0.4)).prop_map(|(at, on)| Step::Hold(at, on)),
        2 => prop::bool::weighted(0.3).prop_map(Step::HoldAll),
        2 => prop::bool::weighted(0.3).prop_map(Step::HoldKind),
    ]
}

/// The state of a sequence. It keeps every claim ever made; most are stale, and a stale claim must not change anything.
#[derive(Default)]
struct Run {
    jobs: Vec<JobId>,
    claims: Vec<Claim>,
    holds: Vec<HoldScope>,
}

impl Run {
    fn job(&self, at: usize) -> Option<&JobId> {
        self.jobs.get(at % self.jobs.len().max(1))
    }

    /// Returns one of the last four claims, because these are more likely to be current.
    fn claim(&self, at: usize) -> Option<&Claim> {
        let back = at % 4 % self.claims.len().max(1);
        self.claims.iter().rev().nth(back)
    }

    async fn apply(&mut self, world: &Engine, step: Step) {
        match step {
            Step::Create { lane, kind } => self.jobs.push(match kind {
                Kind::Work => world.create(lane).await,
                Kind::Removal => world.create_removal(lane).await,
                Kind::Plain => world.create_plain(lane).await,
                Kind::Undoable => world.enqueue::<Undoable>(lane, None).await.unwrap(),
            }),
            Step::Claim => {
                let claimed = world.worker().claim(2).await.unwrap();
                for claim in &claimed {
                    let job = world.job(&claim.job_id).await;
                    assert_eq!((job.status, job.fence), (JobStatus::Running, claim.fence));
                    assert!(!self.is_held(&job), "I17 {job:?}");
                }
                self.claims.extend(claimed);
            }
            Step::LoseClaim => drop(world.worker().claim(1).await.unwrap()),
            Step::Crash => self.claims.clear(),
            Step::Heartbeat => {
                let lost = world.worker().heartbeat(&self.claims).await.unwrap();
                assert_eq!(lost, self.claims, "a heartbeat of another owner");
            }
            Step::RunTimers => drop(world.worker().run_timers().await.unwrap()),
            Step::Recover => {
                world.worker().recover().await.unwrap();
                let jobs = world.jobs().await;
                assert!(jobs.iter().all(|job| job.status != JobStatus::Running));
            }
            Step::Tick(seconds) => world.tick(seconds),
            Step::Hold(at, on) => self.hold(world, HoldScope::Lane(lane(at)), on).await,
            Step::HoldAll(on) => self.hold(world, HoldScope::All, on).await,
            Step::HoldKind(on) => {
                let kind = HoldScope::Kind(Undoable::NAME.to_owned());
                self.hold(world, kind, on).await;
            }
            Step::Replay(at) => replay_one(world, at).await,
            Step::Operate(command, at, knows) => {
                if let Some(job) = self.job(at) {
                    operate(world, command, job, knows).await;
                }
            }
            Step::Work(what, at) => {
                if let Some(claim) = self.claim(at) {
                    work(world, what, claim).await;
                }
            }
        }
        self.find_undoing(world).await;
    }

    /// Adds the jobs that undo others, so that the sequence works on them and operates on them as well.
    async fn find_undoing(&mut self, world: &Engine) {
        let new = |job: &Job| !self.jobs.contains(&job.id);
        let mut found: Vec<Job> = world.jobs().await.into_iter().filter(new).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        self.jobs.extend(found.into_iter().map(|job| job.id));
    }

    async fn hold(&mut self, world: &Engine, scope: HoldScope, on: bool) {
        world.hold(&scope, on).await;
        self.holds.retain(|held| *held != scope);
        self.holds.extend(on.then_some(scope));
    }

    fn is_held(&self, job: &Job) -> bool {
        self.holds.iter().any(|scope| match scope {
            HoldScope::Kind(kind) => *kind == job.kind,
            HoldScope::Lane(lane) => *lane == job.lane,
            _ => true,
        })
    }

    /// Returns the state of each job, in the order in which they were created. Every store must reach the same states.
    async fn job_states(&self, world: &Engine) -> Vec<String> {
        let mut all = Vec::with_capacity(self.jobs.len());
        for id in &self.jobs {
            let job = world.job(id).await;
            let steps = job.steps.iter().map(|step| (step.status, step.first_look));
            let steps: Vec<_> = steps.collect();
            let Job {
                status,
                fence,
                attempts,
                lost_leases,
                ..
            } = job;
            let ended = job.failure_kind;
            all.push(format!(
                "{status:?} {fence} {attempts} {lost_leases} {ended:?} {steps:?}"
            ));
        }
        all
    }
}

/// Returns whether the job must not continue: it is being undone, or it is an undo job that is no longer valid. An undo
/// job is invalid if its job has continued, or if a later undo job exists.
async fn must_not_continue(world: &Engine, job: &Job, forces: bool) -> bool {
    let jobs = world.jobs().await;
    let undoing = |undone: &JobId| {
        let own = jobs.iter().filter(|other| other.is_undo());
        let own = own.filter(|other| other.parent_job_id.as_ref() == Some(undone));
        own.max_by_key(|undo| (undo.created_at, undo.id.clone()))
    };
    let Some(undone) = job.parent_job_id.as_ref().filter(|_| job.is_undo()) else {
        return undoing(&job.id).is_some_and(|undo| !undo.status.is_terminal());
    };
    let parent = world.job(undone).await;
    let stopped = parent.failure_kind == Some(FailureKind::Cancelled)
        && parent.finished_at.is_some_and(|at| at <= job.created_at);
    let newest = undoing(undone).is_some_and(|newest| newest.id == job.id);
    let may_undo = stopped && newest;
    !forces && !may_undo
}

/// Checks that a command succeeds exactly in the statuses of the table, and never skips a hook.
async fn operate(world: &Engine, command: JobCommand, id: &JobId, knows: bool) {
    let before = world.job(id).await;
    let by = match command {
        JobCommand::Signal => JobTransition::Wake,
        JobCommand::Cancel => JobTransition::Cancel,
        JobCommand::ForceComplete => JobTransition::ForceComplete,
        JobCommand::Retry if before.status == JobStatus::Failed => JobTransition::Retry,
        JobCommand::Retry => JobTransition::Reschedule,
    };
    let kinds = work_alone();
    let knows = knows || kinds.contains(&before.kind);
    let kinds = if knows { &world.kinds } else { &kinds };
    let goes_on = matches!(by, JobTransition::Retry | JobTransition::ForceComplete);
    let forces = by == JobTransition::ForceComplete;
    let still = before.status == JobStatus::Failed
        && goes_on
        && must_not_continue(world, &before, forces).await;
    let outcome = world.operate_knowing(kinds, command, id).await;
    let after = world.job(id).await;
    let row = by.transition();
    if still || !row.from.contains(&before.status) {
        let refused = matches!(outcome, Err(Error::InvalidState { .. }));
        assert!(refused, "{command:?} {before:?}");
        assert_eq!(after, before);
    } else if knows || matches!(by, JobTransition::Wake | JobTransition::Reschedule) {
        assert_eq!(outcome.unwrap().status, row.to);
        assert_eq!((after.status, after.fence), (row.to, before.fence + 1));
    } else {
        let elsewhere = matches!(outcome, Err(Error::Unavailable(_)));
        assert!(elsewhere, "{command:?} {before:?}");
        assert_eq!(after, before);
    }
}

async fn replay_one(world: &Engine, at: usize) {
    let entries: Vec<DeadLetter> = world.list(DlqQuery::with_status(None)).await;
    let Some(entry) = entries.get(at % entries.len().max(1)) else {
        return;
    };
    let job = world.job(&entry.job_id).await;
    let still = entry.status == DlqStatus::Pending
        && job.status == JobStatus::Failed
        && must_not_continue(world, &job, false).await;
    let outcome = world.replay(&world.kinds, &entry.id).await;
    if still {
        assert_eq!(outcome.unwrap_err().code().as_str(), "INVALID_STATE");
    } else if entry.status == DlqStatus::Pending {
        let job = outcome.unwrap();
        let replayed = (JobStatus::Queued, entry.replay_count + 1);
        assert_eq!((job.status, job.replay_count), replayed);
    } else {
        let code = outcome.unwrap_err().code();
        assert_eq!(code.as_str(), "DLQ_ENTRY_NOT_REPLAYABLE");
    }
}

/// Checks that a report has an effect exactly if its fence is current.
async fn work(world: &Engine, work: Work, claim: &Claim) {
    let before = world.job(&claim.job_id).await;
    let holds = before.status == JobStatus::Running && before.fence == claim.fence;
    let step = before.current_step().unwrap_or(0);
    let error = JobError::new("TEST", "a test");
    let what = match work {
        Work::Start => Report::Start(step),
        Work::Look(found) => Report::Look(step, found),
        Work::Advance | Work::AdvanceTwice => Report::Advance(step, json!({ "step": step })),
        Work::FailForNow => Report::Fail(Failure::Transient {
            error,
            retry_after: std::time::Duration::ZERO,
            may_have_effect: false,
        }),
        Work::FailForGood => Report::Fail(Failure::Permanent(error)),
        Work::Wait => Report::Wait {
            until: before.updated_at.plus(std::time::Duration::from_secs(60)),
            reason: "a certificate".into(),
        },
        Work::Progress => Report::Progress,
        Work::Release => Report::Release {
            is_step_started: true,
        },
        Work::HandBack => Report::Release {
            is_step_started: false,
        },
    };
    let started = before.steps[step].status == StepStatus::Running;
    let outcome = world.worker().report(claim, what.clone()).await;
    let after = world.job(&claim.job_id).await;
    if !holds {
        assert_eq!(outcome.unwrap(), LeaseState::Lost);
        assert_eq!(after, before, "I3: a stale fence wrote");
        return;
    }
    if matches!(work, Work::Look(_) | Work::Advance | Work::AdvanceTwice) && !started {
        assert!(outcome.is_err(), "continued without an intent");
        assert_eq!(after, before);
        return;
    }
    assert!(matches!(outcome, Ok(LeaseState::Held(_))), "{outcome:?}");
    let leaves = after.status != JobStatus::Running;
    assert_eq!(after.fence, before.fence + i64::from(leaves), "I2");
    if matches!(work, Work::Wait | Work::Release | Work::HandBack) {
        assert_eq!(after.attempts, before.attempts, "I14");
    }
    if let Work::Look(found) = work {
        let known = before.steps[step].first_look.unwrap_or(found);
        let looked = after.steps[step].first_look;
        assert_eq!(
            looked,
            Some(known),
            "a later observation changed the first one"
        );
    }
    if matches!(work, Work::Progress) {
        assert_eq!((after.attempts, after.lost_leases), (0, 0), "I14");
    }
    if matches!(work, Work::AdvanceTwice) {
        let again = world.worker().report(claim, what).await.unwrap();
        assert_eq!(matches!(again, LeaseState::Held(_)), !leaves);
        assert_eq!(
            world.job(&claim.job_id).await,
            after,
            "a repeated report was applied twice"
        );
    }
}

/// Runs `cases` sequences, each with its own stores.
fn any_order_keeps_the_invariants(cases: u32, longest: usize, backend: Backend) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases: testing::cases(cases),
        ..Config::default()
    };
    let steps = prop::collection::vec(step(), 1..longest);
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(keeps_the_invariants(steps, backend));
        Ok(())
    });
    outcome.unwrap();
}

async fn keeps_the_invariants(steps: Vec<Step>, backend: Backend) {
    let world = Engine::on(backend).await;
    let reference = Engine::memory().await;
    let (mut run, mut expected) = (Run::default(), Run::default());
    let mut fences = Vec::new();
    for step in steps {
        run.apply(&world, step).await;
        assert_invariants(&world).await;
        if backend != Backend::Memory {
            expected.apply(&reference, step).await;
            let standings = expected.job_states(&reference).await;
            assert_eq!(run.job_states(&world).await, standings, "{step:?}");
        }
        let mut now = Vec::with_capacity(run.jobs.len());
        for id in &run.jobs {
            now.push(world.job(id).await.fence);
        }
        let mut known = fences.iter().zip(&now);
        assert!(known.all(|(old, new)| old <= new), "I2: a fence decreased");
        fences = now;
    }
}

#[test]
fn any_order_of_commands_keeps_the_invariants_in_memory() {
    any_order_keeps_the_invariants(250, 70, Backend::Memory);
}

#[test]
fn any_order_of_commands_keeps_the_invariants_on_sqlite() {
    any_order_keeps_the_invariants(8, 40, Backend::Sqlite);
}

#[test]
fn any_order_of_commands_keeps_the_invariants_on_postgres() {
    any_order_keeps_the_invariants(4, 30, Backend::Postgres);
}

#[test]
fn any_order_of_commands_keeps_the_invariants_on_sqlx() {
    any_order_keeps_the_invariants(2, 30, Backend::Sqlx);
}
