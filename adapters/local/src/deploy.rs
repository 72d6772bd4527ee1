//! Deploying a site: made whole in the staging folder, renamed into place, then shown by switching a pointer file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use core_domain::cli::Limits;
use core_domain::kernel::Timestamp;
use core_domain::port::{ResourceRef, SiteFile, SiteUpload};
use core_domain::registry::ResourceType;

use crate::config::{Faults, Moment};
use crate::error::{LocalError, Result};
use crate::manifest::{Manifest, to_json};
use crate::names::{branch_label, check_paths, content_digest, digest};
use crate::site::{
    BRANCHES, CONTENT, DEPLOYMENTS, Deployment, Entry, INDEX, Pointer, RECORD, SiteIndex,
    address_label, deployment, pointer,
};
use crate::vault::{Staged, Vault};

const KIND: &str = ResourceType::Pages.as_str();

/// A deployment that is served, or was until a later one took its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deployed {
    pub(crate) id: String,
    /// Address without domain.
    pub(crate) label: String,
}

/// Deploys the site unless the deployment exists; then finishes it if it was interrupted.
pub(crate) fn deploy(
    vault: &Vault,
    upload: &SiteUpload,
    now: Timestamp,
    faults: &Faults,
) -> Result<Deployed> {
    let project = project(&upload.project);
    faults.at("deploy", &project, Moment::Before)?;
    check(vault, upload)?;
    let id = deployment_id(&upload.deployment_key);
    let known = deployment(vault, &upload.project, &id)?;
    let record = match known {
        Some(known) => known,
        None => publish(vault, upload, &id, now, faults)?,
    };
    faults.at("deploy", &project, Moment::Published)?;
    show(vault, &upload.project, &id, &record)?;
    faults.at("deploy", &project, Moment::Done)?;
    Ok(Deployed {
        id,
        label: address_label(&upload.project, &record.label),
    })
}

/// Looks for a deployment that is finished.
pub(crate) fn find(vault: &Vault, name: &str, key: &str) -> Result<Option<Deployed>> {
    if Manifest::read(vault, &project(name))?.is_none() {
        return Ok(None);
    }
    let id = deployment_id(key);
    let Some(record) = deployment(vault, name, &id)? else {
        return Ok(None);
    };
    let shown = pointer(vault, name, &record.label)?;
    // In place and never shown: it was interrupted, and asking for it again finishes it.
    if shown.is_none_or(|shown| shown.sequence < record.sequence) {
        return Ok(None);
    }
    Ok(Some(Deployed {
        id,
        label: address_label(name, &record.label),
    }))
}

fn check(vault: &Vault, upload: &SiteUpload) -> Result<()> {
    if upload.branch.is_empty() || upload.deployment_key.is_empty() {
        return invalid("a deployment needs a branch and a key");
    }
    let limits = Limits::default();
    if upload.files.is_empty() || upload.files.len() > limits.files {
        return invalid(&format!("a deployment has 1 to {} files", limits.files));
    }
    let too_large = |file: &SiteFile| file.content.len() as u64 > limits.file_bytes;
    if upload.files.iter().any(too_large) {
        let most = limits.file_bytes;
        return invalid(&format!("a file of a deployment has at most {most} bytes"));
    }
    check_paths(upload.files.iter().map(|file| file.path.as_str()))?;
    if Manifest::read(vault, &project(&upload.project))?.is_none() {
        return Err(LocalError::Missing(format!("pages {}", upload.project)));
    }
    let label = branch_label(&upload.project, &upload.branch);
    let address = address_label(&upload.project, &label);
    if address != upload.project && vault.path(&[KIND, &address])?.try_exists()? {
        return invalid("another project has the address of this branch");
    }
    Ok(())
}

fn publish(
    vault: &Vault,
    upload: &SiteUpload,
    id: &str,
    now: Timestamp,
    faults: &Faults,
) -> Result<Deployment> {
    let label = branch_label(&upload.project, &upload.branch);
    let before = pointer(vault, &upload.project, &label)?;
    let staged = vault.stage_dir()?;
    let index = write_site(vault, upload, before.as_ref(), &staged)?;
    faults.at("deploy", &project(&upload.project), Moment::Staged)?;

    let lock = vault.exclusive()?;
    let shown = pointer(vault, &upload.project, &label)?;
    let record = Deployment {
        deployment_key: upload.deployment_key.clone(),
        label,
        sequence: shown.map_or(0, |shown| shown.sequence) + 1,
        index,
        created_at: now,
    };
    staged.write(RECORD, &to_json(&record)?)?;
    if vault.publish(staged, &[KIND, &upload.project, DEPLOYMENTS, id], &lock)? {
        return Ok(record);
    }
    // The same request came in twice at once: what is there stays.
    deployment(vault, &upload.project, id)?
        .ok_or_else(|| LocalError::Missing(format!("deployment {id}")))
}

/// Writes index and content; answers the digest of the index.
fn write_site(
    vault: &Vault,
    upload: &SiteUpload,
    before: Option<&Pointer>,
    staged: &Staged,
) -> Result<String> {
    let mut entries = BTreeMap::new();
    fs::create_dir(staged.path().join(CONTENT))?;
    for file in &upload.files {
        let entry = entry(file);
        let relative = format!("{CONTENT}/{}", entry.digest);
        let target = staged.path().join(&relative);
        if !target.try_exists()? && !share(vault, &upload.project, before, &entry, &target)? {
            staged.write(&relative, &file.content)?;
        }
        entries.insert(file.path.clone(), entry);
    }
    let index = to_json(&SiteIndex(entries))?;
    staged.write(INDEX, &index)?;
    Ok(content_digest(&index))
}

/// Takes the content from the deployment before, if that has it whole: content never changes, so both share one file.
fn share(
    vault: &Vault,
    project: &str,
    before: Option<&Pointer>,
    entry: &Entry,
    target: &Path,
) -> Result<bool> {
    let Some(before) = before else {
        return Ok(false);
    };
    let from = vault.path(&[
        KIND,
        project,
        DEPLOYMENTS,
        &before.deployment,
        CONTENT,
        &entry.digest,
    ])?;
    let whole = fs::metadata(&from).is_ok_and(|found| found.len() == entry.size);
    // Some file systems have no links: then the content is written once more.
    Ok(whole && fs::hard_link(&from, target).is_ok())
}

fn entry(file: &SiteFile) -> Entry {
    Entry {
        digest: content_digest(&file.content),
        size: file.content.len() as u64,
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

/// Lets the branch show the deployment unless it shows a later one.
fn show(vault: &Vault, project: &str, id: &str, record: &Deployment) -> Result<()> {
    let _lock = vault.exclusive()?;
    let shown = pointer(vault, project, &record.label)?;
    if shown.is_some_and(|shown| shown.sequence >= record.sequence) {
        return Ok(());
    }
    let next = to_json(&Pointer {
        deployment: id.to_owned(),
        sequence: record.sequence,
        index: record.index.clone(),
    })?;
    vault.replace_file(&[KIND, project, BRANCHES, &record.label], &[&next])
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

fn invalid<T>(text: &str) -> Result<T> {
    Err(LocalError::Invalid(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sent_as_utf_8_and_unknown_files_as_bytes() {
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
