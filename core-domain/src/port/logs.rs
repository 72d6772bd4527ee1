//! The logs of workers and sites at the provider.

use std::sync::Arc;

use async_trait::async_trait;

use super::Cause;
use crate::cli::{LogId, LogLine};

/// Reads what workers write to their consoles, and the requests to workers and sites.
///
/// A provider keeps a bounded number of lines of each object, or none. Writing never waits for a reader: a slow reader
/// gets a line with the number of omitted lines instead ([`LogContent::omission`](crate::cli::LogContent::omission)).
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait ResourceLogs: Send + Sync + std::fmt::Debug {
    /// Opens the log of an owner's workers and pages projects. Returns `None` if the query names an object that the
    /// owner does not have.
    ///
    /// # Errors
    /// [`LogError`] if the provider fails.
    async fn open(&self, query: LogQuery) -> Result<Option<Box<dyn LogReader>>, LogError>;
}

/// The provider failed to read logs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the logs could not be read")]
pub struct LogError(#[source] pub Cause);

/// A position in the log of an owner's objects.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait LogReader: Send + Sync + std::fmt::Debug {
    /// Returns the next lines, without waiting for any, and moves the position after them. Objects that the owner
    /// creates later may be missing.
    ///
    /// # Errors
    /// [`LogError`] if the provider fails.
    async fn next(&mut self) -> Result<LogBatch, LogError>;
}

/// Selects the lines of a log.
#[derive(Clone, Debug)]
pub struct LogQuery {
    /// The owner of the objects.
    pub owner: String,
    /// The name of the only object whose lines are read. `None` means all workers and pages projects of the owner.
    pub resource: Option<String>,
    /// The first line.
    pub start: LogStart,
    /// Whether the reader waits for new lines. If `false`, it reads only the lines that exist.
    pub follow: bool,
    /// Is notified when there may be new lines. `None` if the reader polls.
    pub listener: Option<Arc<dyn LogListener>>,
}

/// The first line that a reader gets. A provider that keeps no lines starts with new lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStart {
    /// The last kept lines of all selected objects together, at most this number.
    Tail(u32),
    /// The first kept line after this one.
    After(LogId),
}

/// The lines that a reader has read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogBatch {
    /// The lines in the order of their ids; empty if there are none.
    pub lines: Vec<LogLine>,
    /// `true` if more lines may be available immediately.
    pub has_more: bool,
}

/// Is notified of new lines. A notification is a hint: it can come without new lines, and a provider may send none.
pub trait LogListener: Send + Sync + std::fmt::Debug {
    /// Notifies that there may be new lines. Must return immediately.
    fn on_lines(&self);
}
