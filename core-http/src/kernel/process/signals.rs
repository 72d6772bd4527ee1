//! Signals between the tasks of a process: changes of access, progress of jobs, and sealed audit entries.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use core_domain::kernel::{Effect, JobId, Notice};
use tokio::sync::{broadcast, watch};

/// The number of changes that are buffered for a slow receiver. A receiver that misses some assumes that its access
/// has changed.
const CAPACITY: usize = 256;

/// Announces committed changes of access to the event streams of this process. It is only a hint: notices of other
/// processes can be late, so receivers also poll. Clones share their state.
#[derive(Clone, Debug)]
pub struct AccessSignal(broadcast::Sender<Notice>);

impl Default for AccessSignal {
    fn default() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }
}

impl AccessSignal {
    /// Notifies the receivers of a change of access.
    pub fn notify(&self, effect: &Effect) {
        self.send(|| Notice::Effect(effect.clone()));
    }

    /// Notifies the receivers that the access of every caller may have changed.
    pub fn notify_all(&self) {
        self.send(|| Notice::Missed);
    }

    fn send(&self, notice: impl FnOnce() -> Notice) {
        if self.0.receiver_count() > 0 {
            // Sending fails only if the last receiver was dropped in the meantime.
            let _ = self.0.send(notice());
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.0.subscribe()
    }
}

/// Announces sealed audit entries to the event streams of this process. It is only a hint: notices of other processes
/// can be late, so receivers also poll. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct SealSignal(Arc<watch::Sender<()>>);

impl SealSignal {
    /// Notifies the receivers that audit entries were sealed.
    pub fn notify(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// Announces new events of jobs to the event streams of this process. It is only a hint: notices of other processes can
/// be late, so receivers also poll. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct JobSignal(Arc<Mutex<HashMap<JobId, watch::Sender<()>>>>);

impl JobSignal {
    /// Notifies the receivers that a job has new events.
    pub fn notify(&self, job: &JobId) {
        if let Some(sender) = self.senders().get(job) {
            sender.send_replace(());
        }
    }

    /// Notifies the receivers of all jobs.
    pub fn notify_all(&self) {
        for sender in self.senders().values() {
            sender.send_replace(());
        }
    }

    /// Subscribes to the events of a job. Removes jobs that no longer have a subscriber.
    pub(crate) fn subscribe(&self, job: &JobId) -> watch::Receiver<()> {
        let mut senders = self.senders();
        senders.retain(|_, sender| sender.receiver_count() > 0);
        senders.entry(job.clone()).or_default().subscribe()
    }

    fn senders(&self) -> MutexGuard<'_, HashMap<JobId, watch::Sender<()>>> {
        // The map is valid after every statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_signal_reaches_the_subscribers_of_its_job_alone_and_forgets_jobs_without_any() {
        let signal = JobSignal::default();
        let [first, second] = ["job-1", "job-2"].map(|id| JobId::parse(id).unwrap());
        let [of_first, of_second] = [&first, &second].map(|job| signal.subscribe(job));
        signal.notify(&first);
        assert!(of_first.has_changed().unwrap());
        assert!(!of_second.has_changed().unwrap());
        signal.notify_all();
        assert!(of_second.has_changed().unwrap());
        drop(of_first);
        let _again = signal.subscribe(&second);
        assert_eq!(signal.senders().len(), 1);
        signal.notify(&first);
    }
}
