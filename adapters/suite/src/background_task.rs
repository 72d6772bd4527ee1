//! Tasks that run until they are asked to end, on tokio.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long what is under way may go on when its task is asked to end.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Runs until it is stopped. Dropped, it is cut off.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl BackgroundTask {
    /// Starts it on the current tokio runtime. It ends by itself soon after its channel turned true.
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

    /// Asks it to end, and returns when it has.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        // One that panicked has stopped as well.
        let _ = (&mut self.task).await;
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns [`GRACE`] after the task was asked to end.
pub(crate) async fn grace_ended(mut stopped: watch::Receiver<bool>) {
    // A channel that is closed: whoever would ask is gone.
    let _ = stopped.wait_for(|stopped| *stopped).await;
    tokio::time::sleep(GRACE).await;
}
