//! Deployment of sites. A deployment is written in the staging folder, renamed into place, and goes live when a pointer
//! file of its branch is replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};

use core_domain::cli::{SiteFile, SiteLimits};
use core_domain::kernel::{Timestamp, hex};
use core_domain::port::{Cause, ResourceRef, SiteUpload};
use core_domain::registry::ResourceType;
use sha2::{Digest, Sha256};

use crate::config::{FaultMoment, LocalConfig};
use crate::data_dir::{DataDir, StagingPath};
use crate::error::{LocalError, Result};
use crate::manifest::{Manifest, to_json};
use crate::names::{branch_label, check_paths, digest};
use crate::prune::{self, ReplacementMark};
use crate::site::{
    BRANCHES, DEPLOYMENTS, Deployment, INDEX, Pointer, RECORD_FILE, SiteIndex, SiteIndexEntry,
    address_label, deployment, pointer,
};
use crate::site_content::{SiteContents, WrittenContents};

const PAGES: &str = ResourceType::Pages.as_str();

/// Size of the write buffer of an index, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// A deployment that is live, or was live until a later deployment replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinishedDeployment {
    pub(crate) id: String,
    /// The address label: the host name without its domain.
    pub(crate) label: String,
}

impl FinishedDeployment {
    fn of(project: &str, id: String, label: &str) -> Self {
        Self {
            id,
            label: address_label(project, label),
        }
    }
}

/// Deploys the site. If the deployment exists but was interrupted, finishes it. Afterwards deletes outdated
/// deployments.
pub(crate) fn deploy(
    data: &DataDir,
    upload: &SiteUpload,
    now: Timestamp,
    config: &LocalConfig,
) -> Result<FinishedDeployment> {
    let project = project(&upload.project);
    config.faults.at("deploy", &project, FaultMoment::Before)?;
    check(data, upload, &config.site_limits)?;
    let id = deployment_id(&upload.deployment_key);
    if let Some(replaced) = ReplacementMark::read(data, &upload.project, &id)? {
        return Ok(FinishedDeployment::of(&upload.project, id, &replaced.label));
    }
    let known = deployment(data, &upload.project, &id)?;
    let record = match known {
        Some(known) => known,
        None => publish(data, upload, &id, now, config)?,
    };
    config
        .faults
        .at("deploy", &project, FaultMoment::Published)?;
    set_live(data, &upload.project, &id, &record)?;
    config.faults.at("deploy", &project, FaultMoment::Live)?;
    match prune::prune(data, &project, now, config) {
        Err(LocalError::Fault(fault)) => return Err(LocalError::Fault(fault)),
        // The site is live, and the next deployment prunes again.
        Err(error) => {
            let cause = Cause::new(error);
            tracing::warn!(%cause, project = upload.project, "old deployments could not be removed");
        }
        Ok(()) => {}
    }
    config.faults.at("deploy", &project, FaultMoment::Done)?;
    Ok(FinishedDeployment::of(&upload.project, id, &record.label))
}

/// Finds a finished deployment by its key. Returns `None` if it does not exist or is unfinished.
pub(crate) fn find(data: &DataDir, name: &str, key: &str) -> Result<Option<FinishedDeployment>> {
    if Manifest::read(data, &project(name))?.is_none() {
        return Ok(None);
    }
    let id = deployment_id(key);
    if let Some(replaced) = ReplacementMark::read(data, name, &id)? {
        return Ok(Some(FinishedDeployment::of(name, id, &replaced.label)));
    }
    let Some(record) = deployment(data, name, &id)? else {
        return Ok(None);
    };
    let shown = pointer(data, name, &record.label)?;
    // The deployment is stored but never went live: it was interrupted. Deploying it again finishes it.
    if shown.is_none_or(|shown| shown.sequence < record.sequence) {
        return Ok(None);
    }
    Ok(Some(FinishedDeployment::of(name, id, &record.label)))
}

fn check(data: &DataDir, upload: &SiteUpload, limits: &SiteLimits) -> Result<()> {
    if upload.branch.is_empty() || upload.deployment_key.is_empty() {
        return invalid_error("a deployment needs a branch and a key");
    }
    let files = upload.site.files();
    if files.is_empty() || files.len() > limits.files {
        return invalid_error(&format!("a deployment has 1 to {} files", limits.files));
    }
    if files.iter().any(|file| file.size > limits.file_bytes) {
        let max = limits.file_bytes;
        return invalid_error(&format!("a file of a deployment has at most {max} bytes"));
    }
    let paths = files.iter().map(|file| file.path.as_str());
    check_paths(paths, limits.path_bytes)?;
    if Manifest::read(data, &project(&upload.project))?.is_none() {
        return Err(LocalError::Missing(format!("pages {}", upload.project)));
    }
    let label = branch_label(&upload.project, &upload.branch);
    let address = address_label(&upload.project, &label);
    if address != upload.project && data.path(&[PAGES, &address])?.try_exists()? {
        return invalid_error("another project has the address of this branch");
    }
    Ok(())
}

fn publish(
    data: &DataDir,
    upload: &SiteUpload,
    id: &str,
    now: Timestamp,
    config: &LocalConfig,
) -> Result<Deployment> {
    let label = branch_label(&upload.project, &upload.branch);
    let manifest = Manifest::read(data, &project(&upload.project))?;
    // Keeps the shared lock until the deployment that refers to these contents is in place.
    let contents = SiteContents::open(data, &upload.project)?;
    let staged = data.stage_dir()?;
    let index = write_site(data, upload, &contents, &staged)?;
    config
        .faults
        .at("deploy", &project(&upload.project), FaultMoment::Staged)?;

    let lock = data.lock_publish()?;
    // A deleted project loses its contents, even if a new project has its name.
    if Manifest::read(data, &project(&upload.project))? != manifest {
        return Err(LocalError::Missing(format!("pages {}", upload.project)));
    }
    let shown = pointer(data, &upload.project, &label)?;
    let record = Deployment {
        deployment_key: upload.deployment_key.clone(),
        label,
        sequence: shown.map_or(0, |shown| shown.sequence) + 1,
        index,
        created_at: now,
    };
    staged.write(RECORD_FILE, &to_json(&record)?)?;
    if data.publish(staged, &[PAGES, &upload.project, DEPLOYMENTS, id], &lock)? {
        return Ok(record);
    }
    // Two equal requests ran at the same time; the existing deployment is kept.
    deployment(data, &upload.project, id)?
        .ok_or_else(|| LocalError::Missing(format!("deployment {id}")))
}

/// Stores the missing contents and writes the index. Returns the digest of the index.
fn write_site(
    data: &DataDir,
    upload: &SiteUpload,
    contents: &SiteContents<'_>,
    staged: &StagingPath,
) -> Result<String> {
    let mut entries = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for file in upload.site.files() {
        let entry = index_entry(file);
        if seen.insert(file.digest) && !contents.has(&entry) {
            missing.insert(file.digest);
        }
        entries.insert(file.path.as_str(), entry);
    }
    drop(seen);
    if !missing.is_empty() {
        let mut written = WrittenContents::begin(data.stage_dir()?);
        upload.site.read(&mut |file, content| {
            if missing.remove(&file.digest) {
                written.write(file, content)
            } else {
                Ok(())
            }
        })?;
        contents.add(written)?;
    }
    let mut index = HashingFile {
        file: io::BufWriter::with_capacity(BUFFER_BYTES, staged.create_file(INDEX)?),
        hash: Sha256::new(),
    };
    serde_json::to_writer(&mut index, &SiteIndex(entries)).map_err(io::Error::from)?;
    index.finish()
}

/// A file that is hashed while it is written, so that it never has to be in memory.
struct HashingFile {
    file: io::BufWriter<fs::File>,
    hash: Sha256,
}

impl HashingFile {
    /// Makes the file durable and returns its SHA-256 in hexadecimal.
    fn finish(self) -> Result<String> {
        let file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(hex(&self.hash.finalize()))
    }
}

impl Write for HashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn index_entry(file: &SiteFile) -> SiteIndexEntry {
    SiteIndexEntry {
        digest: hex(&file.digest),
        size: file.size,
        content_type: content_type(&file.path),
    }
}

fn content_type(path: &str) -> String {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    let text = guess.type_() == "text" || guess.essence_str() == "application/json";
    if text {
        format!("{guess}; charset=utf-8")
    } else {
        guess.to_string()
    }
}

/// Makes the deployment the live one of its branch, unless a later deployment is live.
fn set_live(data: &DataDir, project: &str, id: &str, record: &Deployment) -> Result<()> {
    let _lock = data.lock_publish()?;
    let shown = pointer(data, project, &record.label)?;
    if shown.is_some_and(|shown| shown.sequence >= record.sequence) {
        return Ok(());
    }
    let next = to_json(&Pointer {
        deployment: id.to_owned(),
        sequence: record.sequence,
        index: record.index.clone(),
    })?;
    data.replace_file(&[PAGES, project, BRANCHES, &record.label], &[&next])
}

fn deployment_id(key: &str) -> String {
    digest(&[key.as_bytes()])[..32].to_owned()
}

fn project(name: &str) -> ResourceRef {
    ResourceRef {
        resource_type: ResourceType::Pages,
        name: name.to_owned(),
    }
}

fn invalid_error<T>(text: &str) -> Result<T> {
    Err(LocalError::Invalid(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_is_utf_8_for_texts_and_octet_stream_for_unknown_files() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("css/site.css", "text/css; charset=utf-8"),
            ("a.svg", "image/svg+xml"),
            ("a.png", "image/png"),
            ("a.json", "application/json; charset=utf-8"),
            ("a.unknown-kind", "application/octet-stream"),
        ] {
            assert_eq!(content_type(path), expected, "{path}");
        }
    }
}
