//! Threads for work that takes long and may take longer: on Linux they give way to all other threads of the process.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// How much the threads give way, as `nice` counts: beside busy threads a core spends a tenth of its time on them, so
/// that they are slow then and still go on.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

type Work = Box<dyn FnOnce() + Send>;

/// The work was not done: it panicked, or no thread could be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the work was not done")]
pub(crate) struct NotDone;

/// A number of threads, started with the first work and ended with this value.
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

    /// Does the work on one of the threads, when those before it are done. It goes on when nobody waits for it any more.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (done, outcome) = oneshot::channel();
        let work = Box::new(move || {
            // Nobody may be waiting for it any more.
            let _ = done.send(work());
        });
        let queue = self.queue.get_or_init(|| self.start());
        queue.send(work).map_err(|_| NotDone)?;
        outcome.await.map_err(|_| NotDone)
    }

    fn start(&self) -> Sender<Work> {
        let (queue, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..self.count {
            let (waiting, name) = (Arc::clone(&waiting), self.name.to_owned());
            let started = thread::Builder::new()
                .name(name)
                .spawn(move || work_off(&waiting));
            if let Err(error) = started {
                tracing::error!(%error, "a thread could not be started");
            }
        }
        queue
    }
}

fn work_off(waiting: &Mutex<Receiver<Work>>) {
    give_way();
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(work) = next else {
            return;
        };
        // A panic is told by the answer that does not come.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    }
}

/// On Linux each thread has a priority of its own.
#[cfg(target_os = "linux")]
fn give_way() {
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), NICE) {
        tracing::warn!(%error, "a thread keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_is_not_done_and_its_thread_goes_on() {
        let threads = BackgroundThreads::new("test", 1);
        let panicked = threads.run(|| panic!("work")).await;
        assert_eq!(panicked, Err::<(), _>(NotDone));
        assert_eq!(threads.run(|| 7).await, Ok(7));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_threads_of_the_work_give_way() {
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
