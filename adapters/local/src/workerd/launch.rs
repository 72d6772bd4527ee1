//! What a worker is started with.

use std::collections::BTreeMap;

use core_domain::kernel::Secret;

use crate::data_dir::DataDir;
use crate::error::Result;
use crate::manifest::Manifest;
use crate::names::digest;
use crate::secrets;
use crate::worker::{self, WorkerScript};

/// A worker as it is to run.
#[derive(Debug)]
pub(super) struct Launch {
    /// Changes when anything it is started with does.
    pub(super) identity: String,
    pub(super) name: String,
    pub(super) owner: String,
    pub(super) script: WorkerScript,
    pub(super) secrets: BTreeMap<String, Secret>,
}

/// What a worker would be started with now; `None` when there is no such worker.
pub(super) fn identity(data: &DataDir, name: &str) -> Result<Option<String>> {
    let resource = worker::worker(name);
    let Some(manifest) = Manifest::read(data, &resource)? else {
        return Ok(None);
    };
    let Some(version) = worker::current_digest(data, name)? else {
        return Ok(None);
    };
    let secrets = secrets::version(data, &resource)?;
    let parts = [manifest.id, manifest.owner, version, secrets];
    Ok(Some(digest(&parts.each_ref().map(String::as_bytes))))
}

/// Reads a worker to start it; `None` when there is no such worker.
pub(super) fn read(data: &DataDir, name: &str) -> Result<Option<Launch>> {
    let resource = worker::worker(name);
    // First: when something changes from here on, the next request sees another identity.
    let Some(identity) = identity(data, name)? else {
        return Ok(None);
    };
    let (Some(version), Some(manifest)) = (
        worker::current(data, name)?,
        Manifest::read(data, &resource)?,
    ) else {
        return Ok(None);
    };
    Ok(Some(Launch {
        identity,
        name: name.to_owned(),
        owner: manifest.owner,
        script: version.script,
        secrets: secrets::read(data, &resource)?,
    }))
}
