//! Deployment of sites. A deployment is written in the staging folder, renamed into place, and goes live when a pointer
//! file of its branch is replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};

use core_domain::cli::{SiteFile, SiteLimits};
use core_domain::kernel::{Timestamp, hex};
use core_domain::port::{Cause, ResourceRef, Site, SiteRedeploy, SiteUpload};
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
    address_label, deployment, find_site, permalink_label, pointer,
};
use crate::site_content::{SiteContents, WrittenContents};

const PAGES: &str = ResourceType::Pages.as_str();

/// Size of the write buffer of an index, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// A deployment that is live, or was live until a later deployment replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinishedDeployment {
    pub(crate) id: String,
    /// The address label of its branch: the host name without its domain.
    pub(crate) label: String,
    /// The address label of this deployment alone.
    pub(crate) permalink: String,
}

impl FinishedDeployment {
    fn of(project: &str, id: String, label: &str) -> Self {
        Self {
            label: address_label(project, label),
            permalink: permalink_label(project, &id),
            id,
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
    let wanted = WantedDeployment {
        project: &upload.project,
        branch: &upload.branch,
        key: &upload.deployment_key,
        content: WantedContent::Upload(upload.site.as_ref()),
    };
    wanted.deploy(data, now, config)
}

/// Deploys the content of an earlier deployment again. Like [`deploy`], without an upload.
///
/// # Errors
/// [`LocalError::Invalid`] if the earlier deployment or one of its contents was deleted.
pub(crate) fn redeploy(
    data: &DataDir,
    request: &SiteRedeploy,
    now: Timestamp,
    config: &LocalConfig,
) -> Result<FinishedDeployment> {
    let wanted = WantedDeployment {
        project: &request.project,
        branch: &request.branch,
        key: &request.deployment_key,
        content: WantedContent::Earlier(&request.source_key),
    };
    wanted.deploy(data, now, config)
}

/// A deployment to create.
#[derive(Clone, Copy)]
struct WantedDeployment<'a> {
    project: &'a str,
    branch: &'a str,
    key: &'a str,
    content: WantedContent<'a>,
}

/// The content of a deployment.
#[derive(Clone, Copy)]
enum WantedContent<'a> {
    /// An uploaded site.
    Upload(&'a dyn Site),
    /// The content of the deployment with this key.
    Earlier(&'a str),
}

impl WantedDeployment<'_> {
    fn deploy(
        &self,
        data: &DataDir,
        now: Timestamp,
        config: &LocalConfig,
    ) -> Result<FinishedDeployment> {
        let project = project(self.project);
        config.faults.at("deploy", &project, FaultMoment::Before)?;
        self.check(data, &config.site_limits)?;
        let id = deployment_id(self.key);
        if let Some(replaced) = ReplacementMark::read(data, self.project, &id)? {
            return Ok(FinishedDeployment::of(self.project, id, &replaced.label));
        }
        let record = match deployment(data, self.project, &id)? {
            Some(known) => known,
            None => self.publish(data, &id, now, config)?,
        };
        config
            .faults
            .at("deploy", &project, FaultMoment::Published)?;
        set_live(data, self.project, &id, &record)?;
        config.faults.at("deploy", &project, FaultMoment::Live)?;
        match prune::prune(data, &project, now, config) {
            Err(LocalError::Fault(fault)) => return Err(LocalError::Fault(fault)),
            // The site is live, and the next deployment prunes again.
            Err(error) => {
                let (cause, project) = (Cause::new(error), self.project);
                tracing::warn!(%cause, project, "old deployments could not be removed");
            }
            Ok(()) => {}
        }
        config.faults.at("deploy", &project, FaultMoment::Done)?;
        Ok(FinishedDeployment::of(self.project, id, &record.label))
    }

    fn check(&self, data: &DataDir, limits: &SiteLimits) -> Result<()> {
        if self.branch.is_empty() || self.key.is_empty() {
            return invalid_error("a deployment needs a branch and a key");
        }
        if let WantedContent::Upload(site) = self.content {
            check_files(site.files(), limits)?;
        }
        if Manifest::read(data, &project(self.project))?.is_none() {
            return Err(LocalError::Missing(format!("pages {}", self.project)));
        }
        let label = branch_label(self.project, self.branch);
        let address = address_label(self.project, &label);
        if address != self.project && data.path(&[PAGES, &address])?.try_exists()? {
            return invalid_error("another project has the address of this branch");
        }
        Ok(())
    }

    fn publish(
        &self,
        data: &DataDir,
        id: &str,
        now: Timestamp,
        config: &LocalConfig,
    ) -> Result<Deployment> {
        let resource = project(self.project);
        let label = branch_label(self.project, self.branch);
        let manifest = Manifest::read(data, &resource)?;
        // Keeps the shared lock until the deployment that refers to these contents is in place.
        let contents = SiteContents::open(data, self.project)?;
        let staged = data.stage_dir()?;
        let index = match self.content {
            WantedContent::Upload(site) => write_site(data, site, &contents, &staged)?,
            WantedContent::Earlier(key) => {
                copy_index(data, self.project, &deployment_id(key), &contents, &staged)?
            }
        };
        config.faults.at("deploy", &resource, FaultMoment::Staged)?;

        let lock = data.lock_publish()?;
        // A deleted project loses its contents, even if a new project has its name.
        if Manifest::read(data, &resource)? != manifest {
            return Err(LocalError::Missing(format!("pages {}", self.project)));
        }
        let shown = pointer(data, self.project, &label)?;
        let record = Deployment {
            deployment_key: self.key.to_owned(),
            label,
            sequence: shown.map_or(0, |shown| shown.sequence) + 1,
            index,
            created_at: now,
        };
        staged.write(RECORD_FILE, &to_json(&record)?)?;
        if data.publish(staged, &[PAGES, self.project, DEPLOYMENTS, id], &lock)? {
            return Ok(record);
        }
        // Two equal requests ran at the same time; the existing deployment is kept.
        deployment(data, self.project, id)?
            .ok_or_else(|| LocalError::Missing(format!("deployment {id}")))
    }
}

/// Copies the index of an earlier deployment after checking that all its contents are stored. Returns the digest of the
/// index.
fn copy_index(
    data: &DataDir,
    project: &str,
    source: &str,
    contents: &SiteContents<'_>,
    staged: &StagingPath,
) -> Result<String> {
    let removed = || {
        let what = "the earlier deployment was removed by the clean-up; deploy the site again";
        LocalError::Invalid(what.to_owned())
    };
    let source = find_site(data, project, source)?.ok_or_else(removed)?;
    let content = source.index_content(data)?.ok_or_else(removed)?;
    let index = source.index(data)?.ok_or_else(removed)?;
    if !index.0.values().all(|entry| contents.has(entry)) {
        return Err(removed());
    }
    staged.write(INDEX, &content)?;
    Ok(source.pointer.index)
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

fn check_files(files: &[SiteFile], limits: &SiteLimits) -> Result<()> {
    if files.is_empty() || files.len() > limits.files {
        return invalid_error(&format!("a deployment has 1 to {} files", limits.files));
    }
    if files.iter().any(|file| file.size > limits.file_bytes) {
        let max = limits.file_bytes;
        return invalid_error(&format!("a file of a deployment has at most {max} bytes"));
    }
    let paths = files.iter().map(|file| file.path.as_str());
    check_paths(paths, limits.path_bytes)
}

/// Stores the missing contents and writes the index. Returns the digest of the index.
///
/// # Errors
/// [`LocalError::Invalid`] if a content is neither stored nor uploaded.
fn write_site(
    data: &DataDir,
    site: &dyn Site,
    contents: &SiteContents<'_>,
    staged: &StagingPath,
) -> Result<String> {
    let mut entries = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for file in site.files() {
        let entry = index_entry(file);
        if seen.insert(file.digest) && !contents.has(&entry) {
            missing.insert(file.digest);
        }
        entries.insert(file.path.as_str(), entry);
    }
    drop(seen);
    if !missing.is_empty() {
        let written = WrittenContents::write(data, site, &mut missing)?;
        if !missing.is_empty() {
            let count = missing.len();
            let what = format!(
                "{count} contents of the site are no longer stored; plan the deployment again"
            );
            return Err(LocalError::Invalid(what));
        }
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
