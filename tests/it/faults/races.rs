//! F9: operators cancel, complete and retry jobs while their worker reports the end of each.

use std::sync::Arc;

use core_domain::kernel::{Error, JobId, Result};
use core_domain::provisioning::{Job, JobStatus};
use core_domain::use_case::provisioning::LeaseState;
use tokio::sync::oneshot;

use crate::jobs::{assert_invariants, queue_orders, up_to_last_reports};
use crate::world::{Backend, Engine, JobCommand, Order, platform};

/// The number of jobs that end at the same time, each in its own lane.
const LANES: usize = 12;

/// The number of rounds on one store. It is limited because the invariant check reads the whole store.
const ROUNDS: usize = 50 * LANES;

const COMMANDS: [JobCommand; 3] = [
    JobCommand::Cancel,
    JobCommand::ForceComplete,
    JobCommand::Retry,
];

/// For each command, how often the operator won and how often the worker won.
type Wins = [[usize; 2]; 3];

/// Runs a race for each of several jobs that are about to end. The worker reports after operators have processed
/// `stopped` of them. Over all rounds the report meets every moment from the first command to the last, whatever the
/// speed of the store.
async fn race(world: &Arc<Engine>, stopped: usize, wins: &mut Wins) {
    let order = |lane| Order {
        platform_id: platform(lane),
        key: None,
    };
    queue_orders(world, &(0..LANES).map(order).collect::<Vec<_>>()).await;
    let worker = world.worker();
    let taken = worker.commit(&[], 99).await.claimed.unwrap();
    let last = up_to_last_reports(&worker, taken).await;
    let jobs: Vec<JobId> = last.iter().map(|one| one.claimed.job_id.clone()).collect();
    let (go, started) = oneshot::channel();
    let operations = tokio::spawn(operate(Arc::clone(world), jobs.clone(), stopped, go));
    started.await.unwrap();
    let reported = worker.commit(&last, 0).await.results;
    let answers = operations.await.unwrap();
    assert_eq!((answers.len(), reported.len()), (LANES, LANES));
    for (at, (answer, reported)) in answers.into_iter().zip(reported).enumerate() {
        let won = operator_won(answer, reported, &world.job(&jobs[at]).await);
        wins[at % 3][usize::from(!won)] += 1;
    }
    // The lanes of jobs that were taken away from the worker pause until the leases would have expired.
    world.tick(31);
}

/// Sends one command for each job. Signals `go` when `first` commands have been processed.
async fn operate(
    world: Arc<Engine>,
    jobs: Vec<JobId>,
    first: usize,
    go: oneshot::Sender<()>,
) -> Vec<Result<Job>> {
    let (mut answers, mut go) = (Vec::with_capacity(jobs.len()), Some(go));
    for (at, job) in jobs.iter().enumerate() {
        if at == first {
            go.take().into_iter().for_each(|go| go.send(()).unwrap());
        }
        answers.push(world.operate(COMMANDS[at % 3], job).await);
    }
    go.into_iter().for_each(|go| go.send(()).unwrap());
    answers
}

/// Returns whether the operator won. Asserts that exactly one side won, and that its result is stored.
fn operator_won(answer: Result<Job>, reported: Result<LeaseState>, job: &Job) -> bool {
    match (answer, reported.unwrap()) {
        (Ok(answered), LeaseState::Lost) => {
            assert_eq!((answered.status, answered.fence), (job.status, job.fence));
            assert!(job.forced || job.status == JobStatus::Failed, "{job:?}");
            true
        }
        (Err(Error::InvalidState { .. }), LeaseState::Held(_)) => {
            assert_eq!((job.status, job.forced), (JobStatus::Completed, false));
            false
        }
        (answer, reported) => panic!("{answer:?} and {reported:?}: {job:?}"),
    }
}

async fn races(world: Engine, rounds: usize, wins: &mut Wins) {
    let world = Arc::new(world);
    for batch in 0..rounds.div_ceil(LANES) {
        race(&world, batch % (LANES + 1), wins).await;
    }
    assert_invariants(&world).await;
}

fn both_have_won(wins: Wins) {
    let [cancelled, forced, retried] = wins;
    for [operators, workers] in [cancelled, forced] {
        assert!(operators > 0 && workers > 0, "{wins:?}");
    }
    assert_eq!(retried[0], 0, "a running job cannot be retried");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_or_the_last_report_wins_ten_thousand_times_in_memory() {
    let mut wins = Wins::default();
    while wins.iter().flatten().sum::<usize>() < 10_000 {
        races(Engine::memory().await, ROUNDS, &mut wins).await;
    }
    both_have_won(wins);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_or_the_last_report_wins_on_sqlite() {
    let mut wins = Wins::default();
    races(Engine::on(Backend::Sqlite).await, 300, &mut wins).await;
    both_have_won(wins);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_or_the_last_report_wins_on_postgres() {
    let mut wins = Wins::default();
    races(Engine::on(Backend::Postgres).await, 300, &mut wins).await;
    both_have_won(wins);
}
