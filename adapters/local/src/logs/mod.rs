//! The logs of workers and sites: what workers write to their consoles, and the requests to workers and sites.
//!
//! Every line is added to a bounded queue ([`LogQueue`]), which never blocks the request or the worker. One task writes
//! the lines to files, which survive restarts. Readers read the files, so that a slow reader costs no memory. Files that
//! are deleted before a reader has read them are replaced by one line with the number of omitted lines.

mod options;
mod queue;
mod reader;
mod segment;
mod writer;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use core_domain::cli::{LogContent, LogLevel};
use core_domain::kernel::Clock;
use core_domain::port::{LogListener, ResourceRef};
use core_domain::registry::ResourceType;
use tokio::sync::watch;

pub use self::options::{ClientAddress, LogOptions};
use self::queue::LogQueue;
use crate::data_dir::DataDir;
use crate::error::Result;
use crate::names::check_name;
use crate::worker::worker_ref;

/// The types of the objects that have logs.
const LOGGED_TYPES: [ResourceType; 2] = [ResourceType::Worker, ResourceType::Pages];

/// Receives what workers write to their consoles. No method blocks.
pub(crate) trait ConsoleSink: Send + Sync + std::fmt::Debug {
    /// Adds a line of a worker.
    fn write(&self, worker: &str, level: LogLevel, text: &str);

    /// Counts lines of a worker that were omitted.
    fn omit(&self, worker: &str, count: u64);
}

/// The logs of one provider. The task that writes them ends when this value is dropped, after the waiting lines if the
/// data folder is still open.
#[derive(Debug)]
pub(crate) struct Logs {
    queue: Arc<LogQueue>,
    state: Arc<LogState>,
}

impl Logs {
    /// Starts the task that writes lines. `last_id` is the id of the last stored line, see [`last_id`]. Must be called
    /// in a Tokio runtime.
    pub(crate) fn start(
        data: &Arc<DataDir>,
        clock: Arc<dyn Clock>,
        last_id: u64,
        options: LogOptions,
    ) -> Self {
        let queue = Arc::new(LogQueue::new(clock, last_id));
        let state = Arc::new(LogState::new(last_id));
        tokio::spawn(writer::write_lines(
            Arc::clone(&queue),
            Arc::clone(&state),
            Arc::downgrade(data),
            options.lines,
        ));
        Self { queue, state }
    }

    /// Adds the line of a request.
    pub(crate) fn push(&self, object: &ResourceRef, content: LogContent) {
        self.queue.push(object, content);
    }

    /// Waits until all lines that were added before are written.
    pub(crate) async fn flush(&self) {
        let last_id = self.queue.last_id();
        let mut written = self.state.written.subscribe();
        // The sender lives as long as this value. Without a writer, nothing is written any more.
        let _ = written.wait_for(|written| *written >= last_id).await;
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl ConsoleSink for Logs {
    fn write(&self, worker: &str, level: LogLevel, text: &str) {
        self.push(&worker_ref(worker), LogContent::console(level, text));
    }

    fn omit(&self, worker: &str, count: u64) {
        self.queue.omit(&worker_ref(worker), count);
    }
}

/// Returns the highest id of all stored lines; 0 if there are none.
pub(crate) fn last_id(data: &DataDir) -> Result<u64> {
    let mut last = 0;
    for resource_type in LOGGED_TYPES {
        data.visit(&[resource_type.as_str()], |name| {
            if check_name(&name).is_ok() {
                let object = ResourceRef {
                    resource_type,
                    name,
                };
                last = last.max(segment::last_id(data, &object)?);
            }
            Ok(())
        })?;
    }
    Ok(last)
}

/// The state that the writer shares with readers.
#[derive(Debug)]
struct LogState {
    /// All lines up to this id are written.
    written: watch::Sender<u64>,
    watches: Mutex<Vec<Weak<Watch>>>,
}

/// The interest of a reader in new lines.
#[derive(Debug)]
struct Watch {
    state: Mutex<WatchState>,
    listener: Option<Arc<dyn LogListener>>,
}

#[derive(Debug, Default)]
struct WatchState {
    objects: BTreeSet<(&'static str, String)>,
    has_news: bool,
}

impl LogState {
    fn new(last_id: u64) -> Self {
        Self {
            written: watch::Sender::new(last_id),
            watches: Mutex::default(),
        }
    }

    /// Creates the watch of a new reader. It has news, so that the reader reads at first.
    fn watch(&self, listener: Option<Arc<dyn LogListener>>) -> Arc<Watch> {
        let watch = Arc::new(Watch {
            state: Mutex::new(WatchState {
                has_news: true,
                ..WatchState::default()
            }),
            listener,
        });
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(Arc::downgrade(&watch));
        watch
    }

    /// Announces that all lines up to `last_id` are written, and that these objects have new lines.
    fn publish(&self, last_id: u64, objects: &[ResourceRef]) {
        self.written
            .send_modify(|written| *written = last_id.max(*written));
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let watches: Vec<_> = watches.iter().filter_map(Weak::upgrade).collect();
        for watch in watches {
            watch.notify_of(objects);
        }
    }
}

impl Watch {
    fn notify_of(&self, objects: &[ResourceRef]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_watched = |object: &ResourceRef| {
            let key = (object.resource_type.as_str(), object.name.clone());
            state.objects.contains(&key)
        };
        if !objects.iter().any(is_watched) {
            return;
        }
        state.has_news = true;
        drop(state);
        if let Some(listener) = &self.listener {
            listener.on_lines();
        }
    }

    /// Sets the objects whose lines are news.
    fn set_objects<'a>(&self, objects: impl IntoIterator<Item = &'a ResourceRef>) {
        let key = |object: &ResourceRef| (object.resource_type.as_str(), object.name.clone());
        let objects = objects.into_iter().map(key).collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.objects = objects;
    }

    /// Makes the next read look for lines.
    fn set_news(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.has_news = true;
    }

    /// Returns whether there was news since the last call.
    fn take_news(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.has_news)
    }
}
