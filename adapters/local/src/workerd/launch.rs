//! The data that is required to start a worker.

use std::collections::BTreeMap;

use core_domain::kernel::Secret;

use crate::data_dir::DataDir;
use crate::error::Result;
use crate::manifest::Manifest;
use crate::names::digest;
use crate::secrets;
use crate::worker::{self, WorkerScript};

/// A worker with everything that its process needs.
#[derive(Debug)]
pub(super) struct Launch {
    /// A digest that changes with the manifest, the script and the secrets.
    pub(super) identity: String,
    pub(super) name: String,
    pub(super) owner: String,
    pub(super) script: WorkerScript,
    pub(super) secrets: BTreeMap<String, Secret>,
}

/// Returns the identity with which the worker would be started now; `None` if the worker does not exist.
pub(super) fn identity(data: &DataDir, name: &str) -> Result<Option<String>> {
    let resource = worker::worker_ref(name);
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

/// Reads a worker to start it. Returns `None` if the worker does not exist.
pub(super) fn read(data: &DataDir, name: &str) -> Result<Option<Launch>> {
    let resource = worker::worker_ref(name);
    // The identity is read first. If anything changes afterwards, the next request sees another identity.
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
