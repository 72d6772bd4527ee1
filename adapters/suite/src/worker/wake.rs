//! Wake-ups for workers.

use std::sync::Arc;

use core_domain::port::JobHints;
use tokio::sync::Notify;

/// Wakes the worker of this process, and with hints also the workers of other processes.
#[derive(Clone, Debug, Default)]
pub struct WorkerWake(pub(super) Arc<Wake>);

#[derive(Debug, Default)]
pub(super) struct Wake {
    pub(super) here: Notify,
    pub(super) elsewhere: Notify,
    pub(super) hints: Option<Arc<dyn JobHints>>,
}

impl WorkerWake {
    /// Creates a wake-up that also wakes the workers of other processes on the same store, and is woken by them.
    #[must_use]
    pub fn with_hints(hints: Arc<dyn JobHints>) -> Self {
        Self(Arc::new(Wake {
            hints: Some(hints),
            ..Wake::default()
        }))
    }

    /// Wakes the workers, because there may be a job to claim.
    pub fn wake(&self) {
        self.0.here.notify_one();
        self.0.elsewhere.notify_one();
    }

    /// Wakes the worker because the unit of work that is being committed contains a job. If only this process uses the
    /// store, units run one after the other, so the claim follows next and shares the commit. With other processes the
    /// wake-up would come too early, so nothing happens.
    pub fn wake_before_commit(&self) {
        if self.0.hints.is_none() {
            self.0.here.notify_one();
        }
    }

    /// Waits until the worker is woken.
    pub(crate) async fn wait(&self) {
        self.0.here.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures_util::FutureExt;

    use super::*;

    /// Hints of other processes that never arrive.
    #[derive(Debug)]
    struct Others;

    #[async_trait]
    impl JobHints for Others {
        async fn notify(&self) {}

        async fn wait_for_hint(&self) {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn a_worker_is_woken_before_a_commit_only_if_no_other_process_uses_the_store() {
        for (wake, woken) in [
            (WorkerWake::default(), true),
            (WorkerWake::with_hints(Arc::new(Others)), false),
        ] {
            wake.wake_before_commit();
            assert_eq!(wake.wait().now_or_never().is_some(), woken);
            wake.wake();
            assert!(wake.wait().now_or_never().is_some());
        }
    }
}
