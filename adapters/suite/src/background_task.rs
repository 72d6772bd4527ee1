//! Background tasks on tokio that run until they are stopped. A task that panics is started again.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use core_http::kernel::metrics::{Counter, Metrics};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::metrics::task_panics;

/// How long work in progress may continue after its task is asked to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The default pause before a task that has panicked is started again.
pub(crate) const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Runs a task, and starts it again if it panics. Each panic is logged and counted.
#[derive(Clone, Debug)]
pub(crate) struct Restarter {
    task: &'static str,
    pause: Duration,
    panics: Counter,
}

impl Restarter {
    /// Creates a restarter with the default pause, and registers the counter of its panics. `task` is the name of the
    /// task in the log and in metrics.
    pub(crate) fn new(task: &'static str, metrics: &Metrics) -> Self {
        Self {
            task,
            pause: RESTART_PAUSE,
            panics: task_panics(metrics, task),
        }
    }

    /// Shortens the pause to `longest`, if it is longer.
    pub(crate) fn with_max_pause(mut self, longest: Duration) -> Self {
        self.pause = self.pause.min(longest);
        self
    }

    /// Runs the futures that `start` creates, one after the other, until one of them ends without a panic. The futures
    /// themselves must react to a stop. A stop also ends the pause after a panic; the task then runs once more, so that
    /// it can complete its work. A task that panics after the stop is not started again.
    pub(crate) async fn run<S, F>(
        self,
        mut state: watch::Receiver<S>,
        is_stop: impl Fn(&S) -> bool,
        mut start: impl FnMut() -> F,
    ) where
        F: Future<Output = ()>,
    {
        loop {
            let run = AssertUnwindSafe(async { start().await });
            let ended = run.catch_unwind().await;
            let Err(panic) = ended else {
                return;
            };
            self.panics.increment();
            let message = panic_message(panic.as_ref());
            tracing::error!(
                task = self.task,
                message,
                "a background task panicked; it is started again unless the process stops"
            );
            if is_stop(&state.borrow()) {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(self.pause) => {}
                stop = state.wait_for(&is_stop) => if stop.is_err() { return },
            }
        }
    }
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "",
    }
}

/// A running background task. Dropping it aborts the task.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl BackgroundTask {
    /// Starts the task on the current tokio runtime. `run` creates its future, and does so again after a panic; see
    /// [`Restarter::run`]. The future must end soon after its channel turns true.
    pub(crate) fn start<F>(
        name: &'static str,
        metrics: &Metrics,
        mut run: impl FnMut(watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let restarter = Restarter::new(name, metrics);
        let task = restarter.run(stopped.clone(), |stop| *stop, move || run(stopped.clone()));
        Self {
            stop,
            task: tokio::spawn(task),
        }
    }

    /// Asks the task to end, and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        // A task that was aborted has also stopped.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{Instant, sleep, sleep_until};

    use super::*;

    /// A task that panics in its first runs, and then waits for the stop.
    #[derive(Clone, Default)]
    struct Fragile {
        metrics: Metrics,
        runs: Arc<AtomicU32>,
        /// The runs that ended because of the stop.
        stops: Arc<AtomicU32>,
    }

    impl Fragile {
        fn start(&self, panics: u32) -> BackgroundTask {
            let (runs, stops) = (Arc::clone(&self.runs), Arc::clone(&self.stops));
            BackgroundTask::start("fragile", &self.metrics, move |mut stopped| {
                let (run, stops) = (runs.fetch_add(1, Ordering::SeqCst), Arc::clone(&stops));
                async move {
                    assert!(run >= panics, "run {run} panics");
                    let _ = stopped.wait_for(|stopped| *stopped).await;
                    stops.fetch_add(1, Ordering::SeqCst);
                }
            })
        }

        fn runs(&self) -> u32 {
            self.runs.load(Ordering::SeqCst)
        }

        fn has_panics(&self, number: u32) -> bool {
            let sample = "core_background_task_panics_total{task=\"fragile\"}";
            let text = self.metrics.render();
            text.lines()
                .any(|line| line == format!("{sample} {number}"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_counted_and_started_again_after_a_second() {
        let fragile = Fragile::default();
        let task = fragile.start(2);
        assert!(fragile.has_panics(0));
        let begun = Instant::now();
        for (after, runs) in [
            (10, 1),
            (900, 1),
            (1_100, 2),
            (1_900, 2),
            (2_100, 3),
            (60_000, 3),
        ] {
            sleep_until(begun + Duration::from_millis(after)).await;
            assert_eq!(fragile.runs(), runs, "{after} ms");
        }
        assert!(fragile.has_panics(2));
        task.stop().await;
        assert_eq!(fragile.stops.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_the_pause_at_once_and_lets_the_task_complete_its_work() {
        let fragile = Fragile::default();
        let task = fragile.start(1);
        sleep(Duration::from_millis(500)).await;
        let asked = Instant::now();
        task.stop().await;
        assert!(asked.elapsed() < Duration::from_millis(10));
        assert_eq!(
            (fragile.runs(), fragile.stops.load(Ordering::SeqCst)),
            (2, 1)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_always_panics_ends_after_a_stop() {
        let fragile = Fragile::default();
        let task = fragile.start(u32::MAX);
        sleep(Duration::from_millis(2_500)).await;
        let asked = Instant::now();
        task.stop().await;
        assert!(asked.elapsed() < Duration::from_millis(10));
        assert!(fragile.runs() == 4 && fragile.has_panics(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_task_is_not_started_again() {
        let fragile = Fragile::default();
        drop(fragile.start(u32::MAX));
        sleep(Duration::from_secs(60)).await;
        assert!(fragile.runs() <= 1);
    }

    #[test]
    fn the_message_of_a_panic_is_logged() {
        let of = |panic: Box<dyn Any + Send>| panic_message(panic.as_ref()).to_owned();
        assert_eq!(of(Box::new("broken")), "broken");
        assert_eq!(of(Box::new(String::from("broken"))), "broken");
        assert_eq!(of(Box::new(1)), "");
    }
}
