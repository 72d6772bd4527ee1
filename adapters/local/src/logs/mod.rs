//! The logs of workers and sites: what workers write to their consoles, and the requests to workers and sites.
//!
//! Every line is added to a bounded queue ([`LogQueue`]), which never blocks the request or the worker. One task writes
//! the lines to files, which survive restarts. Readers read the files, so that a slow reader costs no memory. Files that
//! are deleted before a reader has read them are replaced by one line with the number of omitted lines.

mod options;
mod queue;
mod reader;
mod segment;
mod state;
mod writer;

use std::sync::Arc;

use core_domain::cli::{LogContent, LogLevel};
use core_domain::kernel::Clock;
use core_domain::port::ResourceRef;
use core_domain::registry::ResourceType;

pub use self::options::{ClientAddress, LogOptions};
use self::queue::LogQueue;
use self::state::LogState;
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
