//! The threads that run the blocking work of the stores, and the limits of that work.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::error::{LocalError, Result, run_blocking};
use crate::limits::BindingLimits;

/// The threads and the limits of store calls. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) limits: BindingLimits,
    threads: Option<Arc<Threads>>,
}

impl Execution {
    /// Uses the blocking threads that the whole process shares.
    pub(crate) const fn with_shared_threads(limits: BindingLimits) -> Self {
        Self {
            limits,
            threads: None,
        }
    }

    /// Uses [`BindingLimits::threads`] dedicated threads, so that this work never delays other work.
    ///
    /// # Errors
    /// [`LocalError::Io`] if the threads cannot be prepared.
    pub(crate) fn with_dedicated_threads(limits: BindingLimits) -> Result<Self> {
        let threads = Threads::new(limits.threads)?;
        Ok(Self {
            limits,
            threads: Some(Arc::new(threads)),
        })
    }

    /// Runs blocking work.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        match &self.threads {
            None => run_blocking(work).await,
            Some(threads) => threads.run(work).await,
        }
    }
}

/// A fixed number of threads. They start with the first work and stop after a few idle seconds.
#[derive(Debug)]
struct Threads {
    /// A runtime that runs no tasks: only its threads for blocking work are used. `None` after the drop.
    runtime: Option<Runtime>,
}

impl Threads {
    fn new(count: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(count)
            .thread_name("core-bindings")
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
        })
    }

    async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let Some(runtime) = &self.runtime else {
            return Err(io::Error::other("the threads have ended").into());
        };
        let finished = runtime.spawn_blocking(work).await;
        finished.unwrap_or_else(|error| Err(LocalError::Io(io::Error::other(error))))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Dropping the runtime would wait for its work, which an async thread must not do.
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use futures_util::poll;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn separate_work_never_delays_shared_work() {
        let limits = BindingLimits {
            threads: 1,
            ..BindingLimits::default()
        };
        let separate = Execution::with_dedicated_threads(limits).unwrap();
        let (start, started) = oneshot::channel();
        let (end, ended) = mpsc::channel::<()>();
        let mut busy = pin!(separate.run(move || {
            let _ = start.send(std::thread::current().name().map(str::to_owned));
            Ok(ended.recv().is_ok())
        }));
        assert!(poll!(&mut busy).is_pending());
        assert_eq!(started.await.unwrap().unwrap(), "core-bindings");
        let mut waiting = pin!(separate.run(|| Ok(())));
        assert!(poll!(&mut waiting).is_pending());
        Execution::with_shared_threads(limits)
            .run(|| Ok(()))
            .await
            .unwrap();
        assert!(poll!(&mut waiting).is_pending());
        end.send(()).unwrap();
        assert!(busy.await.unwrap());
        waiting.await.unwrap();
    }
}
