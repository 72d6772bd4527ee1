//! The logs of the infrastructure provider in memory. It keeps all lines.

use std::sync::{Arc, Weak};

use async_trait::async_trait;

use super::MemoryInfrastructure;
use crate::cli::{LogContent, LogId, LogLine};
use crate::kernel::Timestamp;
use crate::port::{
    LogBatch, LogListener, LogQuery, LogReader, LogStart, ProviderError, ResourceLogs,
};
use crate::registry::ResourceType;

/// Maximum number of lines of one read.
const BATCH: usize = 2;

/// The lines of all objects, and the listeners of open readers.
#[derive(Debug, Default)]
pub(super) struct MemoryLog {
    lines: Vec<LogLine>,
    listeners: Vec<Weak<dyn LogListener>>,
}

impl MemoryInfrastructure {
    /// Appends a line to the log of the object with this name. Line number N has the id N and the time N milliseconds
    /// after the epoch.
    pub fn log(&self, resource: &str, content: LogContent) {
        let mut state = self.state();
        let log = &mut state.log;
        let number = log.lines.len() as u64 + 1;
        log.lines.push(LogLine {
            id: LogId(number),
            at: Timestamp::from_millis(i64::try_from(number).unwrap_or(i64::MAX)),
            resource: resource.to_owned(),
            content,
        });
        log.listeners.retain(|listener| listener.strong_count() > 0);
        let listeners = log.listeners.clone();
        drop(state);
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.on_lines();
        }
    }

    fn has_log(&self, owner: &str, name: &str) -> bool {
        let state = self.state();
        let types = [ResourceType::Worker, ResourceType::Pages];
        state
            .objects
            .get(name)
            .is_some_and(|object| object.owner == owner && types.contains(&object.resource_type))
    }

    /// Returns the selected lines after a position.
    fn lines_after(&self, query: &LogQuery, position: LogId) -> Vec<LogLine> {
        let lines = self.state().log.lines.clone();
        let is_selected = |line: &LogLine| {
            let is_named = query
                .resource
                .as_ref()
                .is_none_or(|name| *name == line.resource);
            line.id > position && is_named && self.has_log(&query.owner, &line.resource)
        };
        lines.into_iter().filter(is_selected).collect()
    }
}

#[async_trait]
impl ResourceLogs for MemoryInfrastructure {
    async fn open(&self, query: LogQuery) -> Result<Option<Box<dyn LogReader>>, ProviderError> {
        if let Some(name) = &query.resource
            && !self.has_log(&query.owner, name)
        {
            return Ok(None);
        }
        if let Some(listener) = &query.listener {
            self.state().log.listeners.push(Arc::downgrade(listener));
        }
        let position = match query.start {
            LogStart::After(id) => id,
            LogStart::Tail(count) => {
                let ids = self.lines_after(&query, LogId::default());
                let before = ids.iter().rev().nth(count as usize);
                before.map_or(LogId::default(), |line| line.id)
            }
        };
        Ok(Some(Box::new(MemoryLogReader {
            provider: self.clone(),
            query,
            position,
        })))
    }
}

#[derive(Debug)]
struct MemoryLogReader {
    provider: MemoryInfrastructure,
    query: LogQuery,
    position: LogId,
}

#[async_trait]
impl LogReader for MemoryLogReader {
    async fn next(&mut self) -> Result<LogBatch, ProviderError> {
        let mut lines = self.provider.lines_after(&self.query, self.position);
        let has_more = lines.len() > BATCH;
        lines.truncate(BATCH);
        if let Some(last) = lines.last() {
            self.position = last.id;
        }
        Ok(LogBatch { lines, has_more })
    }
}
