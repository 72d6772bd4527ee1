//! The background tasks of a worker: hints, heartbeats, timers.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Error, StoreError};
use core_domain::port::JobHints;
use core_domain::use_case::provisioning::{Claim, TimerStats, Worker};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::supervisor::{HeldJobs, max_time_without_heartbeat};
use super::wake::WorkerWake;
use crate::metrics::JobMetrics;

/// Minimum time between two hints to other processes.
const MIN_HINT_INTERVAL: Duration = Duration::from_millis(20);

/// Notifies other processes that a job is ready. Notifications that follow within a short time are merged into one.
pub(super) async fn send_hints(wake: WorkerWake, hints: Arc<dyn JobHints>) {
    loop {
        wake.0.elsewhere.notified().await;
        hints.notify().await;
        tokio::time::sleep(MIN_HINT_INTERVAL).await;
    }
}

pub(super) async fn receive_hints(wake: WorkerWake, hints: Arc<dyn JobHints>) {
    loop {
        hints.wait_for_hint().await;
        wake.0.here.notify_one();
    }
}

/// Extends the leases of all held jobs with one write, three times per lease.
pub(super) async fn heartbeats(worker: Worker, held: Arc<HeldJobs>, metrics: Arc<JobMetrics>) {
    let mut ticks = interval(worker.lease() / 3);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let jobs: Vec<Claim> = held.lock().keys().cloned().collect();
        if jobs.is_empty() {
            continue;
        }
        extend_leases(&worker, &held, &metrics, &jobs).await;
    }
}

/// Extends the leases of these jobs. If this fails, it is repeated in halves, as long as there is time: the database of one job
/// may be away, and those of the others not.
async fn extend_leases(
    worker: &Worker,
    held: &Arc<HeldJobs>,
    metrics: &JobMetrics,
    jobs: &[Claim],
) {
    let give_up_at = Instant::now() + worker.lease() / 6;
    let mut parts = vec![jobs];
    while let Some(part) = parts.pop() {
        let sent_at = Instant::now();
        let sent = timeout(worker.lease() / 3, worker.heartbeat(part));
        let lost = match sent.await.unwrap_or_else(|_| Err(no_response())) {
            Ok(lost) => lost,
            Err(error) => {
                if part.len() > 1 && Instant::now() < give_up_at {
                    parts.extend(<[_; 2]>::from(part.split_at(part.len() / 2)));
                } else {
                    tracing::warn!(?error, jobs = part.len(), "leases could not be extended");
                }
                continue;
            }
        };
        metrics.count_renewals(part.len().saturating_sub(lost.len()));
        let held = held.lock();
        for job in part {
            let until = if lost.contains(job) {
                sent_at
            } else {
                sent_at + max_time_without_heartbeat(worker)
            };
            if let Some(sender) = held.get(job) {
                sender.send_replace(until);
            }
        }
    }
}

fn no_response() -> Error {
    Error::Store(StoreError::unavailable("no response in time"))
}

/// Runs the timers for waits, leases and deadlines: when one is due, when notified, and periodically. A run has a
/// limit, so it is repeated until no work is left.
pub(super) async fn timers(
    worker: Worker,
    wake: WorkerWake,
    due: Arc<Notify>,
    metrics: Arc<JobMetrics>,
) {
    loop {
        let stats = worker.run_timers().await;
        if let Ok(stats) = &stats {
            metrics.count_timers(stats);
        }
        match stats {
            Ok(done) if done == TimerStats::default() => {}
            Ok(_) => {
                wake.wake();
                continue;
            }
            Err(error) => {
                tracing::warn!(?error, "the timers for waits, leases and deadlines failed");
            }
        }
        let pause = worker.timer_pause().await;
        tokio::select! {
            () = due.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
