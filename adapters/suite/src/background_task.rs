//! Background tasks on tokio that run until they are stopped.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long work in progress may continue after its task is asked to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A running background task. Dropping it aborts the task.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl BackgroundTask {
    /// Starts the task on the current tokio runtime. The task must end soon after its channel turns true.
    pub(crate) fn start<F>(run: impl FnOnce(watch::Receiver<bool>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        Self {
            stop,
            task: tokio::spawn(run(stopped)),
        }
    }

    /// Asks the task to end, and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        // A task that panicked has also stopped.
        let _ = (&mut self.task).await;
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits until [`GRACE`] has passed since the task was asked to end.
pub(crate) async fn wait_for_grace(mut stopped: watch::Receiver<bool>) {
    // If the channel is closed, the handle of the task was dropped.
    let _ = stopped.wait_for(|stopped| *stopped).await;
    tokio::time::sleep(GRACE).await;
}
