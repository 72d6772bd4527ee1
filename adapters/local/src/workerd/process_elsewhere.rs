//! A placeholder for systems other than Unix, on which workers cannot run. [`super::find_workerd`] returns `None`
//! there, so these methods are never called.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use tokio::sync::watch;
use tokio::time::Instant;

use super::bindings::Bindings;
use super::capnp::Network;
use super::forward::WorkerBody;
use super::launch::Launch;
use super::program::Workerd;
use crate::data_dir::DataDir;
use crate::error::{LocalError, Result};
use crate::host::SiteBody;
use crate::logs::ConsoleSink;

#[derive(Debug)]
pub(super) struct Process {
    pub(super) identity: String,
    pub(super) started_at: Instant,
    never: std::convert::Infallible,
}

#[derive(Debug)]
pub(super) enum SendError {
    Ended(String),
    Silent,
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl Process {
    pub(super) fn start(
        _: &Workerd,
        _: &Launch,
        _: Bindings,
        _: &DataDir,
        _: Network<'_>,
        _: Arc<dyn ConsoleSink>,
    ) -> Result<Self> {
        Err(LocalError::Io(std::io::ErrorKind::Unsupported.into()))
    }

    pub(super) fn end(&self) -> Option<String> {
        match self.never {}
    }

    pub(super) fn watch_end(&self) -> watch::Receiver<Option<String>> {
        match self.never {}
    }

    pub(super) fn has_answered(&self) -> bool {
        match self.never {}
    }

    pub(super) fn touch(&self) {
        match self.never {}
    }

    pub(super) fn last_used(&self) -> Instant {
        match self.never {}
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        _: Request<WorkerBody>,
        _: Duration,
    ) -> Result<Response<SiteBody>, SendError> {
        match self.never {}
    }
}
