//! A process of a simulation: its worker, its time limits, its stop.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::provisioning::DEFAULT_LEASE;
use core_domain::use_case::provisioning::{Claim, StepEnd, StepFuture, Supervisor};

use super::mutants::{Mutant, run_without_fence};
use crate::world::{Engine, FakeProvider, Rng};

pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Aborts a step when the lease has expired by the process's own time, or when the process stops.
struct Limits {
    provider: Arc<FakeProvider>,
    /// When the claim of the current job began.
    claims_since: AtomicU64,
    stops: Arc<AtomicBool>,
}

#[async_trait]
impl Supervisor for Limits {
    async fn attempt(&self, _: &Claim, _: Duration, mut work: StepFuture<'_>) -> StepEnd {
        std::future::poll_fn(|cx| {
            let held_for =
                self.provider.elapsed_seconds() - self.claims_since.load(Ordering::SeqCst);
            if held_for > DEFAULT_LEASE.as_secs() {
                return Poll::Ready(StepEnd::LeaseLost);
            }
            if self.is_stopping() {
                return Poll::Ready(StepEnd::Stopping);
            }
            work.as_mut().poll(cx).map(StepEnd::Finished)
        })
        .await
    }

    fn is_stopping(&self) -> bool {
        self.stops.load(Ordering::SeqCst)
    }
}

/// A process with one worker.
pub(super) struct Process {
    work: Option<Task>,
    stops: Arc<AtomicBool>,
}

impl Process {
    pub(super) fn start(world: &Arc<Engine>, rng: &Rng, mutant: Mutant) -> Self {
        let stops = Arc::<AtomicBool>::default();
        let limits = Limits {
            provider: Arc::clone(&world.provider),
            claims_since: AtomicU64::new(0),
            stops: Arc::clone(&stops),
        };
        let work = work(Arc::clone(world), rng.clone(), limits, mutant);
        Self {
            work: Some(Box::pin(work)),
            stops,
        }
    }

    /// Stops the process: it starts no new work, and aborts and releases running work.
    pub(super) fn stop(&self) {
        self.stops.store(true, Ordering::SeqCst);
    }

    /// Runs one turn. Returns whether the process has ended.
    pub(super) fn turn(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let ended = |work: &mut Task| work.as_mut().poll(&mut cx).is_ready();
        if self.work.as_mut().is_none_or(ended) {
            self.work = None;
        }
        self.work.is_none()
    }
}

async fn work(world: Arc<Engine>, rng: Rng, limits: Limits, mutant: Mutant) {
    let worker = world.worker();
    while !limits.is_stopping() {
        limits
            .claims_since
            .store(world.provider.elapsed_seconds(), Ordering::SeqCst);
        if mutant != Mutant::NoFence {
            // A failing store ends the work on the job. The job is recovered when its lease expires.
            let _ = worker.run_one(&limits).await;
        } else if let Ok(claimed) = worker.claim(1).await
            && let Some(claimed) = claimed.first()
        {
            run_without_fence(&world, &worker, claimed).await;
        }
        rng.pause(1).await;
        tokio::task::yield_now().await;
    }
}
