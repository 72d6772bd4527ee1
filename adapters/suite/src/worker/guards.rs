//! Batches the lease checks of steps: checks that are requested at the same time share one read of the store.

use std::sync::Arc;

use core_domain::kernel::{Result, StoreError};
use core_domain::use_case::provisioning::{Claim, Worker};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::yield_now;

/// Maximum number of checks that one read answers.
const MAX_QUESTIONS: usize = 256;

/// The source of fences.
pub(super) trait Fences: Send {
    /// Returns for each of these jobs whether it is held, with one read that begins after the call.
    fn are_held(&self, jobs: &[Claim]) -> impl Future<Output = Result<Vec<bool>>> + Send;
}

impl Fences for Worker {
    async fn are_held(&self, jobs: &[Claim]) -> Result<Vec<bool>> {
        Self::are_held(self, jobs).await
    }
}

/// A job, and the channel for the answer whether it is still held.
struct Question {
    job: Claim,
    answer: oneshot::Sender<Result<bool>>,
}

/// A handle that asks whether jobs are still held.
#[derive(Clone, Debug)]
pub(super) struct Guards(mpsc::UnboundedSender<Question>);

/// The receiver of questions that have not been answered. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Questions(Arc<Mutex<mpsc::UnboundedReceiver<Question>>>);

/// Creates a connected pair of handle and receiver.
pub(super) fn guards() -> (Guards, Questions) {
    let (asked, questions) = mpsc::unbounded_channel();
    (Guards(asked), Questions(Arc::new(Mutex::new(questions))))
}

fn worker_ended() -> StoreError {
    StoreError::unavailable("the worker has ended")
}

fn check_panicked() -> StoreError {
    StoreError::unavailable("the check of the lease panicked, or the worker has ended")
}

impl Guards {
    /// Returns whether the job is still held, based on a read that begins after the call.
    pub(super) async fn is_held(&self, job: &Claim) -> Result<bool> {
        let (answer, answered) = oneshot::channel();
        let job = job.clone();
        let sent = self.0.send(Question { job, answer });
        sent.map_err(|_| worker_ended())?;
        answered.await.map_err(|_| check_panicked())?
    }
}

impl Questions {
    /// Answers questions until all handles are dropped. A question that arrives during a read is answered by the next
    /// read. If a read panics, its questions fail; a clone can answer the later ones.
    pub(super) async fn answer(self, worker: impl Fences) {
        let mut receiver = self.0.lock().await;
        let mut questions = Vec::new();
        while receiver.recv_many(&mut questions, MAX_QUESTIONS).await > 0 {
            // Attempts that were started together also reach their guards together.
            yield_now().await;
            while questions.len() < MAX_QUESTIONS
                && let Ok(question) = receiver.try_recv()
            {
                questions.push(question);
            }
            answer_all(&worker, questions.drain(..)).await;
        }
    }
}

async fn answer_all(worker: &impl Fences, questions: impl Iterator<Item = Question>) {
    let (jobs, answers): (Vec<_>, Vec<_>) = questions.map(|one| (one.job, one.answer)).unzip();
    let held = worker.are_held(&jobs).await;
    for (at, answer) in answers.into_iter().enumerate() {
        let held = match &held {
            Ok(held) => Ok(held.get(at).copied().unwrap_or(false)),
            Err(error) => Err(StoreError::unavailable(error.to_string()).into()),
        };
        // The receiver may have been aborted, and no longer needs the answer.
        let _ = answer.send(held);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use core_domain::kernel::JobId;
    use core_http::kernel::metrics::Metrics;
    use tokio::sync::{Semaphore, watch};
    use tokio::task::JoinSet;

    use super::*;
    use crate::background_task::Restarter;

    /// A store of fences whose reads wait for a permit.
    #[derive(Clone)]
    struct Store {
        held: Arc<Mutex<HashSet<Claim>>>,
        reads: Arc<Mutex<Vec<usize>>>,
        permits: Arc<Semaphore>,
        works: bool,
    }

    impl Store {
        fn with(jobs: impl IntoIterator<Item = Claim>) -> Self {
            Self {
                held: Arc::new(Mutex::new(jobs.into_iter().collect())),
                reads: Arc::default(),
                permits: Arc::new(Semaphore::new(0)),
                works: true,
            }
        }

        fn start(&self) -> Guards {
            let (guards, questions) = guards();
            tokio::spawn(questions.answer(self.clone()));
            guards
        }
    }

    impl Fences for Store {
        async fn are_held(&self, jobs: &[Claim]) -> Result<Vec<bool>> {
            self.reads.lock().unwrap().push(jobs.len());
            self.permits.acquire().await.unwrap().forget();
            if !self.works {
                return Err(worker_ended().into());
            }
            let held = self.held.lock().unwrap();
            Ok(jobs.iter().map(|job| held.contains(job)).collect())
        }
    }

    fn job(number: i64) -> Claim {
        Claim {
            job_id: JobId::parse(&format!("j{number}")).unwrap(),
            fence: number,
        }
    }

    /// Asks for these jobs, each in its own task. All of them have asked when this returns.
    async fn ask(guards: &Guards, jobs: impl Iterator<Item = i64>) -> JoinSet<(i64, Result<bool>)> {
        let mut tasks = JoinSet::new();
        for number in jobs {
            let guards = guards.clone();
            tasks.spawn(async move { (number, guards.is_held(&job(number)).await) });
        }
        for _ in 0..8 {
            yield_now().await;
        }
        tasks
    }

    #[tokio::test]
    async fn guards_that_ask_at_the_same_time_share_one_read() {
        let store = Store::with((0..40).filter(|number| number % 3 > 0).map(job));
        let guards = store.start();
        let asked = ask(&guards, 0..40).await;
        store.permits.add_permits(1);
        for (number, held) in asked.join_all().await {
            assert_eq!(held.unwrap(), number % 3 > 0, "{number}");
        }
        assert_eq!(*store.reads.lock().unwrap(), [40]);
    }

    #[tokio::test]
    async fn a_fence_that_is_lost_before_the_read_is_seen_by_every_waiter() {
        let store = Store::with((0..9).map(job));
        let guards = store.start();
        let first = ask(&guards, 0..1).await;
        // These ask while the first read is in progress, so a read that begins later answers them.
        let mut later = ask(&guards, 1..9).await;
        store.held.lock().unwrap().clear();
        store.permits.add_permits(2);
        drop(first);
        while let Some(answer) = later.join_next().await {
            let (number, held) = answer.unwrap();
            assert!(!held.unwrap(), "{number}");
        }
        assert_eq!(*store.reads.lock().unwrap(), [1, 8]);
    }

    #[tokio::test]
    async fn a_failed_read_fails_every_waiter() {
        let store = Store {
            works: false,
            ..Store::with((0..5).map(job))
        };
        let guards = store.start();
        store.permits.add_permits(1);
        let asked = ask(&guards, 0..5).await;
        assert!(asked.join_all().await.iter().all(|(_, held)| held.is_err()));
    }

    /// Fences whose first read panics.
    #[derive(Clone)]
    struct PanickingFences(Arc<AtomicBool>);

    impl Fences for PanickingFences {
        async fn are_held(&self, jobs: &[Claim]) -> Result<Vec<bool>> {
            let is_first = !self.0.swap(true, Ordering::SeqCst);
            assert!(!is_first, "the first read panics");
            Ok(vec![true; jobs.len()])
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_panics_fails_its_questions_and_no_later_ones() {
        let (guards, questions) = guards();
        let restarter = Restarter::new("guards", &Metrics::new());
        let (phase, fences) = (watch::channel(()), PanickingFences(Arc::default()));
        let answers = restarter.run(
            phase.1,
            |()| false,
            move || questions.clone().answer(fences.clone()),
        );
        tokio::spawn(answers);
        assert!(guards.is_held(&job(1)).await.is_err());
        assert!(guards.is_held(&job(2)).await.unwrap());
    }
}
