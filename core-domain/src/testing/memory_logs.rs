//! The logs of the infrastructure provider in memory. It keeps all lines.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;

use crate::cli::{LogContent, LogId, LogLine};
use crate::kernel::Timestamp;
use crate::port::{LogBatch, LogError, LogListener, LogQuery, LogReader, LogStart, ResourceLogs};

/// Maximum number of lines of one read.
const BATCH: usize = 2;

/// The lines of all objects, and the listeners of open readers. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryLog(Arc<Mutex<LogState>>);

#[derive(Debug, Default)]
struct LogState {
    lines: Vec<LogLine>,
    listeners: Vec<Weak<dyn LogListener>>,
}

impl MemoryLog {
    /// Appends a line. Line number N has the id N and the time N milliseconds after the epoch.
    pub(super) fn push(&self, resource: &str, content: LogContent) {
        let mut state = self.state();
        let number = state.lines.len() as u64 + 1;
        state.lines.push(LogLine {
            id: LogId(number),
            at: Timestamp::from_millis(i64::try_from(number).unwrap_or(i64::MAX)),
            resource: resource.to_owned(),
            content,
        });
        let listeners = state.listeners.clone();
        drop(state);
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.on_lines();
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type OwnerOf = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The logs of the objects of a provider.
#[derive(Clone)]
pub(super) struct MemoryLogs {
    log: MemoryLog,
    /// Returns the owner of the worker or pages project with a name, if it exists.
    owner_of: Arc<OwnerOf>,
}

impl fmt::Debug for MemoryLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryLogs").field(&self.log).finish()
    }
}

impl MemoryLogs {
    pub(super) fn new(
        log: MemoryLog,
        owner_of: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            log,
            owner_of: Arc::new(owner_of),
        }
    }

    fn is_owned(&self, name: &str, owner: &str) -> bool {
        (self.owner_of)(name).is_some_and(|found| found == owner)
    }

    /// Returns the selected lines after a position.
    fn lines_after(&self, query: &LogQuery, position: LogId) -> Vec<LogLine> {
        let lines = self.log.state().lines.clone();
        let is_selected = |line: &LogLine| {
            let resource = query.resource.as_ref();
            let is_named = resource.is_none_or(|name| *name == line.resource);
            line.id > position && is_named && self.is_owned(&line.resource, &query.owner)
        };
        lines.into_iter().filter(is_selected).collect()
    }
}

#[async_trait]
impl ResourceLogs for MemoryLogs {
    async fn open(&self, query: LogQuery) -> Result<Option<Box<dyn LogReader>>, LogError> {
        if let Some(name) = &query.resource
            && !self.is_owned(name, &query.owner)
        {
            return Ok(None);
        }
        if let Some(listener) = &query.listener {
            let listener = Arc::downgrade(listener);
            self.log.state().listeners.push(listener);
        }
        let position = match query.start {
            LogStart::After(id) => id,
            LogStart::Tail(count) => {
                let lines = self.lines_after(&query, LogId::default());
                let before = lines.iter().rev().nth(count as usize);
                before.map_or(LogId::default(), |line| line.id)
            }
        };
        Ok(Some(Box::new(MemoryLogReader {
            logs: self.clone(),
            query,
            position,
        })))
    }
}

#[derive(Debug)]
struct MemoryLogReader {
    logs: MemoryLogs,
    query: LogQuery,
    position: LogId,
}

#[async_trait]
impl LogReader for MemoryLogReader {
    async fn next(&mut self) -> Result<LogBatch, LogError> {
        let mut lines = self.logs.lines_after(&self.query, self.position);
        let has_more = lines.len() > BATCH;
        lines.truncate(BATCH);
        if let Some(last) = lines.last() {
            self.position = last.id;
        }
        Ok(LogBatch { lines, has_more })
    }
}
