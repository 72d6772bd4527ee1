//! The loop that processes queued records on tokio: messages of the outbox, mails, and messages to webhooks.
//!
//! The loop claims as many records as it has free slots, so every attempt starts with its claim. An attempt that takes
//! too long is cut off before its claim expires, so no other process makes the same attempt at the same time.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::pin::pin;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::Result;
use core_domain::use_case::shared::claim_duration;
use core_http::kernel::metrics::Metrics;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use crate::background_task::{BackgroundTask, wait_for_grace};
use crate::metrics::DeliveryMetrics;

/// Time between two polls for due records if the queue is not woken.
const POLL: Duration = Duration::from_secs(1);

/// Pause after a claim that found records and left slots free. Records that become due in this time are claimed
/// together, and attempts that end in this time are settled together.
const GATHER: Duration = Duration::from_millis(10);

/// The number of attempts in progress for each receiver.
pub(crate) type InProgress<R> = BTreeMap<R, u32>;

/// The records of one kind, and how they are delivered.
#[async_trait]
pub(crate) trait DueQueue: Send + Sync + 'static {
    /// A claimed record.
    type ClaimedRecord: Send + Sync + 'static;
    /// The outcome of an attempt.
    type Outcome: Send + Sync + 'static;
    /// The id of a receiver. Attempts in progress are counted for each receiver.
    type Receiver: Ord + Clone + Send + Sync + 'static;

    /// The name of the queue in logs.
    const NAME: &'static str;

    /// The longest time that an attempt may take. A claim lasts twice as long.
    const MAX_ATTEMPT_DURATION: Duration;

    /// Maximum number of outcomes that are stored together. With 1, an outcome that takes long to store delays no
    /// other.
    const MAX_BATCH: usize;

    /// The time after which an attempt is cut off.
    fn timeout(&self) -> Duration;

    /// Maximum number of attempts in progress.
    fn concurrency(&self) -> u32;

    /// Claims due records, as many as there are free slots.
    async fn claim(
        &self,
        in_progress: &InProgress<Self::Receiver>,
    ) -> Result<Vec<Self::ClaimedRecord>>;

    /// Returns the receiver of a record.
    fn receiver(claimed: &Self::ClaimedRecord) -> Self::Receiver;

    /// Delivers a record.
    async fn attempt(&self, claimed: &Self::ClaimedRecord) -> Self::Outcome;

    /// Returns the outcome of an attempt that was cut off because it took too long.
    fn timed_out_outcome(&self, claimed: &Self::ClaimedRecord, took: Duration) -> Self::Outcome;

    /// Returns the outcome of an attempt that was cut off because the process stops.
    fn released_outcome() -> Self::Outcome;

    /// The values of the label `outcome` in metrics.
    const OUTCOMES: &'static [&'static str];

    /// Returns the label of an outcome, one of [`OUTCOMES`](Self::OUTCOMES).
    fn outcome_label(outcome: &Self::Outcome) -> &'static str;

    /// Stores the outcomes of attempts that have ended, at most [`MAX_BATCH`](Self::MAX_BATCH) of them.
    async fn store_outcomes(&self, attempts: &[CompletedAttempt<Self>]) -> Result<()>;
}

/// A claimed record, and the outcome of the attempt.
pub(crate) type CompletedAttempt<Q> = (<Q as DueQueue>::ClaimedRecord, <Q as DueQueue>::Outcome);

/// Starts to deliver records on the current tokio runtime. After a stop it waits up to
/// [`GRACE`](crate::background_task::GRACE) for attempts in progress and releases the others. It ends after twice that
/// time at the latest. If the task is aborted, its records are claimed again when their claims expire. If the loop
/// panics, attempts in progress continue, and the next run of the loop stores their outcomes.
pub(crate) fn start<Q: DueQueue>(queue: Q, wake: Arc<Notify>, metrics: &Metrics) -> BackgroundTask {
    let delivery_metrics = DeliveryMetrics::new(metrics, Q::NAME, Q::OUTCOMES);
    let (queue, attempts) = (Arc::new(queue), Arc::new(Mutex::new(Attempts::<Q>::new())));
    BackgroundTask::start(Q::NAME, metrics, move |stopped| {
        let (queue, attempts) = (Arc::clone(&queue), Arc::clone(&attempts));
        let (wake, metrics) = (Arc::clone(&wake), delivery_metrics.clone());
        async move { run(queue, wake, metrics, &mut *attempts.lock().await, stopped).await }
    })
}

async fn run<Q: DueQueue>(
    queue: Arc<Q>,
    wake: Arc<Notify>,
    metrics: DeliveryMetrics,
    attempts: &mut Attempts<Q>,
    mut stopped: watch::Receiver<bool>,
) {
    while !*stopped.borrow() {
        let (begun, in_progress) = (Instant::now(), attempts.in_progress());
        let (mut claim, mut grace) = (
            queue.claim(&in_progress),
            pin!(wait_for_grace(stopped.clone())),
        );
        // An attempt that ends during the claim is settled at once, because its own claim expires.
        let claimed = loop {
            tokio::select! {
                claimed = &mut claim => break Some(claimed),
                () = attempts.any_ended() => attempts.store_ended(&queue, &stopped),
                () = &mut grace => break None,
            }
        };
        let Some(claimed) = claimed else {
            break;
        };
        let claimed = claimed.unwrap_or_else(|error| {
            tracing::warn!(queue = Q::NAME, ?error, "due records could not be claimed");
            Vec::new()
        });
        // The claims were made at this time or later.
        let deadline = begun + claim_duration(Q::MAX_ATTEMPT_DURATION) * 3 / 4;
        let has_found = !claimed.is_empty();
        for claimed in claimed {
            let receiver = Q::receiver(&claimed);
            let attempt = attempt(Arc::clone(&queue), claimed, deadline, stopped.clone());
            attempts.spawn(receiver, measure::<Q>(attempt, metrics.clone()));
        }
        if has_found && attempts.number() < queue.concurrency() {
            tokio::select! {
                () = tokio::time::sleep(GATHER) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        }
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep(POLL) => {}
            () = attempts.any_ended() => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        attempts.store_ended(&queue, &stopped);
    }
    // The stop ends every attempt.
    while attempts.number() > 0 {
        attempts.any_ended().await;
        attempts.store_ended(&queue, &stopped);
    }
}

/// Makes an attempt, and counts it.
async fn measure<Q: DueQueue>(
    attempt: impl Future<Output = CompletedAttempt<Q>>,
    metrics: DeliveryMetrics,
) -> CompletedAttempt<Q> {
    let (_in_progress, begun) = (metrics.begin(), Instant::now());
    let completed = attempt.await;
    metrics.count(Q::outcome_label(&completed.1), begun.elapsed());
    completed
}

/// Makes an attempt. Returns the record and the outcome.
async fn attempt<Q: DueQueue>(
    queue: Arc<Q>,
    claimed: Q::ClaimedRecord,
    deadline: Instant,
    stopped: watch::Receiver<bool>,
) -> CompletedAttempt<Q> {
    let begun = Instant::now();
    let cut_off_at = deadline.min(begun + queue.timeout());
    let outcome = tokio::select! {
        attempt = timeout_at(cut_off_at, queue.attempt(&claimed)) => {
            attempt.unwrap_or_else(|_| queue.timed_out_outcome(&claimed, begun.elapsed()))
        }
        () = wait_for_grace(stopped) => Q::released_outcome(),
    };
    (claimed, outcome)
}

/// Stores the outcomes of attempts that have ended.
async fn store_within_grace<Q: DueQueue>(
    queue: Arc<Q>,
    attempts: Vec<CompletedAttempt<Q>>,
    stopped: watch::Receiver<bool>,
) {
    tokio::select! {
        () = store_batch(queue.as_ref(), &attempts) => {}
        () = wait_for_grace(stopped) => {
            tracing::warn!(queue = Q::NAME, "outcomes of attempts were not stored before the stop");
        }
    }
}

/// Stores all outcomes together. If that fails, stores each one alone, so that one bad outcome does not block the
/// others.
async fn store_batch<Q: DueQueue>(queue: &Q, attempts: &[CompletedAttempt<Q>]) {
    if attempts.len() > 1 && queue.store_outcomes(attempts).await.is_ok() {
        return;
    }
    for attempt in attempts {
        if let Err(error) = queue.store_outcomes(slice::from_ref(attempt)).await {
            tracing::warn!(
                queue = Q::NAME,
                ?error,
                "the outcome of an attempt could not be stored"
            );
        }
    }
}

/// The slots in use: attempts in progress, and attempts whose outcomes are being stored.
struct Attempts<Q: DueQueue> {
    attempts: JoinSet<CompletedAttempt<Q>>,
    receivers: HashMap<Id, Q::Receiver>,
    settlements: JoinSet<()>,
    /// The receivers of the attempts of each settlement.
    settling: HashMap<Id, Vec<Q::Receiver>>,
    /// Attempts that have ended and are not settled yet.
    ended: Vec<(Q::Receiver, CompletedAttempt<Q>)>,
}

impl<Q: DueQueue> Attempts<Q> {
    fn new() -> Self {
        Self {
            attempts: JoinSet::new(),
            receivers: HashMap::new(),
            settlements: JoinSet::new(),
            settling: HashMap::new(),
            ended: Vec::new(),
        }
    }

    fn spawn(
        &mut self,
        receiver: Q::Receiver,
        attempt: impl Future<Output = CompletedAttempt<Q>> + Send + 'static,
    ) {
        let task = self.attempts.spawn(attempt);
        self.receivers.insert(task.id(), receiver);
    }

    fn number(&self) -> u32 {
        self.in_progress().values().sum()
    }

    fn in_progress(&self) -> InProgress<Q::Receiver> {
        let mut counts = BTreeMap::new();
        let settling = self.settling.values().flatten();
        let ended = self.ended.iter().map(|(receiver, _)| receiver);
        for receiver in self.receivers.values().chain(settling).chain(ended) {
            *counts.entry(receiver.clone()).or_default() += 1;
        }
        counts
    }

    /// Waits until an attempt or a settlement has ended. Never returns if there are none.
    async fn any_ended(&mut self) {
        tokio::select! {
            Some(ended) = self.attempts.join_next_with_id() => self.record_attempt(ended),
            Some(ended) = self.settlements.join_next_with_id() => self.free(ended),
            else => pending().await,
        }
    }

    /// Starts to store the outcomes of attempts that have ended, and frees the slots of stored ones.
    fn store_ended(&mut self, queue: &Arc<Q>, stopped: &watch::Receiver<bool>) {
        while let Some(ended) = self.attempts.try_join_next_with_id() {
            self.record_attempt(ended);
        }
        while let Some(ended) = self.settlements.try_join_next_with_id() {
            self.free(ended);
        }
        while !self.ended.is_empty() {
            let batch = self.ended.len().min(Q::MAX_BATCH);
            let (receivers, attempts) = self.ended.drain(..batch).unzip();
            let settlement = store_within_grace(Arc::clone(queue), attempts, stopped.clone());
            let task = self.settlements.spawn(settlement);
            self.settling.insert(task.id(), receivers);
        }
    }

    /// Records the end of an attempt. An attempt that panicked has no outcome: its record is claimed again when its
    /// claim expires.
    fn record_attempt(&mut self, ended: TaskResult<CompletedAttempt<Q>>) {
        match ended {
            Ok((id, attempt)) => {
                let receiver = self.receivers.remove(&id);
                self.ended
                    .extend(receiver.map(|receiver| (receiver, attempt)));
            }
            Err(error) => {
                tracing::error!(queue = Q::NAME, ?error, "an attempt panicked");
                self.receivers.remove(&error.id());
            }
        }
    }

    /// Frees the slots of a settlement, even if it panicked.
    fn free(&mut self, ended: TaskResult<()>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                tracing::error!(queue = Q::NAME, ?error, "storing outcomes panicked");
                error.id()
            }
        };
        self.settling.remove(&id);
    }
}

/// The result of a task that ended.
type TaskResult<T> = std::result::Result<(Id, T), JoinError>;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use core_domain::kernel::StoreError;
    use tokio::time::sleep;

    use super::*;
    use crate::background_task::GRACE;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Outcome {
        Done,
        TimedOut,
        Released,
    }

    /// The labels of the outcomes, in their order.
    const OUTCOMES: [&str; 3] = ["done", "timed-out", "released"];

    /// A queue whose claims, attempts and settlements take the given times.
    struct ScriptedQueue {
        claims: AtomicU32,
        concurrency: u32,
        /// Returns the number of records for a call of `claim`. Calls are counted from 0.
        on_claim: fn(u32) -> usize,
        claim: Duration,
        attempt: Duration,
        settle: Duration,
        settled: Arc<Mutex<Vec<(Outcome, Duration)>>>,
        begun: Instant,
    }

    const FOREVER: Duration = Duration::from_secs(1_000_000);

    impl ScriptedQueue {
        fn new() -> Self {
            Self {
                claims: AtomicU32::new(0),
                concurrency: 1,
                on_claim: |_| 1,
                claim: Duration::ZERO,
                attempt: Duration::ZERO,
                settle: Duration::ZERO,
                settled: Arc::default(),
                begun: Instant::now(),
            }
        }
    }

    #[async_trait]
    impl DueQueue for ScriptedQueue {
        type ClaimedRecord = ();
        type Outcome = Outcome;
        type Receiver = ();

        const NAME: &'static str = "scripted";
        const MAX_ATTEMPT_DURATION: Duration = Duration::from_secs(60);
        const MAX_BATCH: usize = 8;

        fn timeout(&self) -> Duration {
            Self::MAX_ATTEMPT_DURATION
        }

        fn concurrency(&self) -> u32 {
            self.concurrency
        }

        async fn claim(&self, in_progress: &InProgress<()>) -> Result<Vec<()>> {
            let records = (self.on_claim)(self.claims.fetch_add(1, Ordering::SeqCst));
            if !in_progress.is_empty() {
                return Ok(Vec::new());
            }
            sleep(self.claim).await;
            Ok(vec![(); records])
        }

        fn receiver((): &()) {}

        async fn attempt(&self, (): &()) -> Outcome {
            sleep(self.attempt).await;
            Outcome::Done
        }

        fn timed_out_outcome(&self, (): &(), _: Duration) -> Outcome {
            Outcome::TimedOut
        }

        fn released_outcome() -> Outcome {
            Outcome::Released
        }

        const OUTCOMES: &'static [&'static str] = &OUTCOMES;

        fn outcome_label(outcome: &Outcome) -> &'static str {
            OUTCOMES[*outcome as usize]
        }

        async fn store_outcomes(&self, attempts: &[((), Outcome)]) -> Result<()> {
            let settled = |((), outcome): &((), Outcome)| (*outcome, self.begun.elapsed());
            let settled = attempts.iter().map(settled);
            self.settled.lock().unwrap().extend(settled);
            sleep(self.settle).await;
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_is_cut_off_before_its_claim_expires_even_after_a_slow_claim() {
        for (claim, cut_off) in [(0, 60), (20, 80), (40, 90), (80, 90)] {
            let queue = ScriptedQueue {
                claim: Duration::from_secs(claim),
                attempt: FOREVER,
                settle: FOREVER,
                ..ScriptedQueue::new()
            };
            let settled = Arc::clone(&queue.settled);
            let task = start(queue, Arc::default(), &Metrics::new());
            sleep(Duration::from_secs(100)).await;
            let settled = settled.lock().unwrap().clone();
            assert_eq!(settled.len(), 1);
            let (outcome, after) = settled[0];
            assert_eq!(
                (outcome, after.as_secs()),
                (Outcome::TimedOut, cut_off),
                "{claim}"
            );
            drop(task);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_in_time_even_if_calls_hang() {
        for (claim, attempt, settle, expected) in [
            (FOREVER, FOREVER, FOREVER, GRACE),
            (Duration::ZERO, FOREVER, Duration::ZERO, GRACE),
            (Duration::ZERO, FOREVER, FOREVER, GRACE * 2),
            (Duration::ZERO, Duration::ZERO, FOREVER, GRACE * 2),
        ] {
            let queue = ScriptedQueue {
                claim,
                attempt,
                settle,
                ..ScriptedQueue::new()
            };
            let task = start(queue, Arc::default(), &Metrics::new());
            sleep(Duration::from_secs(1)).await;
            let asked = Instant::now();
            task.stop().await;
            let took = asked.elapsed();
            assert!(took <= expected + Duration::from_millis(10), "{took:?}");
        }
    }

    /// How the store behaves when outcomes are stored.
    enum Storing {
        Hangs,
        /// Fails for this record, and for the records that are stored with it.
        Refuses(u32),
    }

    /// Records that are claimed together: their numbers, and how long their attempts take.
    struct Together {
        records: Mutex<Vec<(u32, Duration)>>,
        storing: Storing,
        settled: Arc<Mutex<Vec<u32>>>,
    }

    #[async_trait]
    impl DueQueue for Together {
        type ClaimedRecord = (u32, Duration);
        type Outcome = Outcome;
        type Receiver = ();

        const NAME: &'static str = "together";
        const MAX_ATTEMPT_DURATION: Duration = Duration::from_secs(60);
        const MAX_BATCH: usize = 8;

        fn timeout(&self) -> Duration {
            Self::MAX_ATTEMPT_DURATION
        }

        fn concurrency(&self) -> u32 {
            8
        }

        async fn claim(&self, _: &InProgress<()>) -> Result<Vec<Self::ClaimedRecord>> {
            Ok(std::mem::take(&mut *self.records.lock().unwrap()))
        }

        fn receiver(_: &Self::ClaimedRecord) {}

        async fn attempt(&self, (_, duration): &Self::ClaimedRecord) -> Outcome {
            sleep(*duration).await;
            Outcome::Done
        }

        fn timed_out_outcome(&self, _: &Self::ClaimedRecord, _: Duration) -> Outcome {
            Outcome::TimedOut
        }

        fn released_outcome() -> Outcome {
            Outcome::Released
        }

        const OUTCOMES: &'static [&'static str] = &OUTCOMES;

        fn outcome_label(outcome: &Outcome) -> &'static str {
            OUTCOMES[*outcome as usize]
        }

        async fn store_outcomes(&self, attempts: &[CompletedAttempt<Self>]) -> Result<()> {
            let numbers: Vec<u32> = attempts.iter().map(|((number, _), _)| *number).collect();
            match self.storing {
                Storing::Hangs => pending().await,
                Storing::Refuses(number) if numbers.contains(&number) => {
                    Err(StoreError::unavailable("not this one").into())
                }
                Storing::Refuses(_) => {
                    self.settled.lock().unwrap().extend(numbers);
                    Ok(())
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn outcomes_that_cannot_be_stored_delay_the_stop_by_no_more_than_their_grace_periods() {
        let queue = Together {
            records: Mutex::new(vec![(1, Duration::from_secs(5)), (2, FOREVER)]),
            storing: Storing::Hangs,
            settled: Arc::default(),
        };
        let task = start(queue, Arc::default(), &Metrics::new());
        // The first attempt ends, and its settlement hangs, one second after the stop was requested.
        sleep(Duration::from_secs(4)).await;
        let asked = Instant::now();
        task.stop().await;
        let took = asked.elapsed();
        assert!(took <= GRACE * 2 + Duration::from_millis(10), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_outcome_that_cannot_be_stored_does_not_block_others() {
        let settled = Arc::new(Mutex::new(Vec::new()));
        let queue = Together {
            records: Mutex::new((1..=3).map(|number| (number, Duration::ZERO)).collect()),
            storing: Storing::Refuses(2),
            settled: Arc::clone(&settled),
        };
        let task = start(queue, Arc::default(), &Metrics::new());
        sleep(Duration::from_secs(1)).await;
        task.stop().await;
        let mut settled = settled.lock().unwrap().clone();
        settled.sort_unstable();
        assert_eq!(settled, [1, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_in_progress_may_end_after_a_stop_was_asked_for() {
        let queue = ScriptedQueue {
            attempt: Duration::from_secs(3),
            ..ScriptedQueue::new()
        };
        let settled = Arc::clone(&queue.settled);
        let task = start(queue, Arc::default(), &Metrics::new());
        sleep(Duration::from_secs(1)).await;
        task.stop().await;
        let outcomes: Vec<Outcome> = settled.lock().unwrap().iter().map(|(o, _)| *o).collect();
        assert_eq!(outcomes, [Outcome::Done]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_of_the_loop_does_not_end_the_queue_or_its_attempts() {
        let queue = ScriptedQueue {
            attempt: Duration::from_secs(5),
            concurrency: 2,
            on_claim: |call| match call {
                0 => 1,
                1..=3 => panic!("claim {call} panics"),
                _ => 0,
            },
            ..ScriptedQueue::new()
        };
        let (settled, metrics) = (Arc::clone(&queue.settled), Metrics::new());
        let task = start(queue, Arc::default(), &metrics);
        sleep(Duration::from_secs(10)).await;
        let outcomes: Vec<_> = settled.lock().unwrap().iter().map(|one| one.0).collect();
        assert_eq!(outcomes, [Outcome::Done]);
        let counted = "core_background_task_panics_total{task=\"scripted\"} 3";
        assert!(metrics.render().contains(counted), "{}", metrics.render());
        task.stop().await;
    }
}
