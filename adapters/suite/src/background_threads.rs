//! Threads for long computations. On Linux they have a lower priority than all other threads of the process.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// The niceness of the threads. On a busy core they get about a tenth of the time: they are slow but still make
/// progress.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

type Work = Box<dyn FnOnce() + Send>;

/// The work was not done: it panicked, or no thread could be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was not done")]
pub(crate) struct WorkFailed;

/// A fixed number of threads. They start with the first work, and end when this value is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundThreads {
    name: &'static str,
    count: usize,
    queue: OnceLock<Sender<Work>>,
}

impl BackgroundThreads {
    pub(crate) const fn new(name: &'static str, count: usize) -> Self {
        Self {
            name,
            count,
            queue: OnceLock::new(),
        }
    }

    /// Runs the work on one of the threads, after the work queued before it. The work continues if the caller stops
    /// waiting.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkFailed> {
        let (done, outcome) = oneshot::channel();
        let work = Box::new(move || {
            // The caller may have stopped waiting.
            let _ = done.send(work());
        });
        let queue = self.queue.get_or_init(|| self.start());
        queue.send(work).map_err(|_| WorkFailed)?;
        outcome.await.map_err(|_| WorkFailed)
    }

    fn start(&self) -> Sender<Work> {
        let (queue, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..self.count {
            let (waiting, name) = (Arc::clone(&waiting), self.name.to_owned());
            let started = thread::Builder::new()
                .name(name)
                .spawn(move || run_queue(&waiting));
            if let Err(error) = started {
                tracing::error!(%error, "a background thread could not be started");
            }
        }
        queue
    }
}

fn run_queue(waiting: &Mutex<Receiver<Work>>) {
    lower_priority();
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(work) = next else {
            return;
        };
        // After a panic the result channel is closed, which the caller sees as an error.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    }
}

/// Lowers the priority of the current thread. On Linux every thread has its own priority.
#[cfg(target_os = "linux")]
fn lower_priority() {
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), NICE) {
        tracing::warn!(%error, "the priority of a background thread could not be lowered");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_is_not_done_and_its_thread_continues() {
        let threads = BackgroundThreads::new("test", 1);
        let panicked = threads.run(|| panic!("work")).await;
        assert_eq!(panicked, Err::<(), _>(WorkFailed));
        assert_eq!(threads.run(|| 7).await, Ok(7));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_background_threads_have_a_lower_priority() {
        let niceness = || {
            let thread = rustix::thread::gettid();
            rustix::process::getpriority_process(Some(thread)).unwrap()
        };
        let before = niceness();
        let threads = BackgroundThreads::new("test", 1);
        assert!(threads.run(niceness).await.unwrap() >= NICE);
        assert_eq!(niceness(), before);
    }
}
