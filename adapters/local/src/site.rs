//! The files of a pages project: immutable deployments, and one pointer file per branch that selects the live
//! deployment.
//!
//! ```text
//! pages/{project}/branches/{label}              the live deployment of the branch
//! pages/{project}/deployments/{id}/index.json   path -> digest, length, content type
//! pages/{project}/content/{digest}              the contents of all deployments, without duplicates
//! pages/{project}/replaced/{id}                 mark: this deployment was replaced by a later one and deleted
//! ```
//! A request path is never used as a file path: it is looked up in the index, which refers to contents by digest.

use std::collections::BTreeMap;
use std::path::PathBuf;

use core_domain::kernel::Timestamp;
use core_domain::registry::{PRODUCTION, ResourceType};
use serde::{Deserialize, Serialize};

use crate::data_dir::DataDir;
use crate::error::{LocalError, Result};
use crate::manifest::read_json;
use crate::names::{check_name, content_digest, is_label_byte};

pub(crate) const BRANCHES: &str = "branches";
pub(crate) const DEPLOYMENTS: &str = "deployments";
pub(crate) const CONTENT: &str = "content";
pub(crate) const INDEX: &str = "index.json";
pub(crate) const RECORD_FILE: &str = "deployment.json";

const KIND: &str = ResourceType::Pages.as_str();

/// The files of a deployment by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteIndex<P: Ord = String>(pub(crate) BTreeMap<P, SiteIndexEntry>);

/// One file of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SiteIndexEntry {
    /// SHA-256 of the content in hexadecimal: the name of its file, and its entity tag.
    pub(crate) digest: String,
    /// The length of the content in bytes.
    pub(crate) size: u64,
    /// The content type, guessed from the file extension.
    pub(crate) content_type: String,
}

/// The record of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deployment {
    pub(crate) deployment_key: String,
    /// The address label of the branch.
    pub(crate) label: String,
    /// The position in the order of the branch's deployments. A pointer never returns to a lower sequence.
    pub(crate) sequence: u64,
    /// The digest of the index file.
    pub(crate) index: String,
    pub(crate) created_at: Timestamp,
}

/// The live deployment of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pointer {
    pub(crate) deployment: String,
    pub(crate) sequence: u64,
    /// The digest of the deployment's index file. Sites with equal digests are equal.
    pub(crate) index: String,
}

/// A served site: a project and its live deployment at this moment.
#[derive(Clone, Debug)]
pub(crate) struct LiveSite {
    pub(crate) project: String,
    pub(crate) pointer: Pointer,
}

/// Returns the address label of a branch of a project: `{project}` or `{label}--{project}`.
pub(crate) fn address_label(project: &str, label: &str) -> String {
    if label == PRODUCTION {
        project.to_owned()
    } else {
        format!("{label}--{project}")
    }
}

/// Separates the digits of a deployment from its project in an address label. The label of a branch never ends in a
/// dash, and the name of a project never begins with one.
const PERMALINK_SEPARATOR: &str = "---";

/// Number of hexadecimal digits of a deployment's id in its address label.
const PERMALINK_DIGITS: usize = 12;

/// Returns the address label of a deployment alone: `{12 digits of its id}---{project}`.
pub(crate) fn permalink_label(project: &str, id: &str) -> String {
    let digits = id.get(..PERMALINK_DIGITS).unwrap_or(id);
    format!("{digits}{PERMALINK_SEPARATOR}{project}")
}

/// Returns the site of an address label; `None` if it does not exist. A project of exactly this name wins over a
/// branch or a deployment.
pub(crate) fn resolve(data: &DataDir, label: &str) -> Result<Option<LiveSite>> {
    if let Some(live) = live(data, label, PRODUCTION)? {
        return Ok(Some(live));
    }
    if let Some((digits, project)) = label.split_once(PERMALINK_SEPARATOR) {
        return find_by_digits(data, project, digits);
    }
    match label.split_once("--") {
        Some((branch, project)) => live(data, project, branch),
        None => Ok(None),
    }
}

/// Returns the deployment whose id begins with these digits.
fn find_by_digits(data: &DataDir, project: &str, digits: &str) -> Result<Option<LiveSite>> {
    if check_name(project).is_err() || digits.len() != PERMALINK_DIGITS {
        return Ok(None);
    }
    let mut ids = data.list(&[KIND, project, DEPLOYMENTS])?.into_iter();
    match ids.find(|id| id.starts_with(digits)) {
        Some(id) => find_site(data, project, &id),
        None => Ok(None),
    }
}

/// Returns a deployment as a site, whether it is live or not; `None` if it was deleted.
pub(crate) fn find_site(data: &DataDir, project: &str, id: &str) -> Result<Option<LiveSite>> {
    let found = deployment(data, project, id)?;
    Ok(found.map(|found| LiveSite {
        project: project.to_owned(),
        pointer: Pointer {
            deployment: id.to_owned(),
            sequence: found.sequence,
            index: found.index,
        },
    }))
}

fn live(data: &DataDir, project: &str, label: &str) -> Result<Option<LiveSite>> {
    let label_good = !label.is_empty() && label.bytes().all(is_label_byte);
    if check_name(project).is_err() || !label_good {
        return Ok(None);
    }
    Ok(pointer(data, project, label)?.map(|pointer| LiveSite {
        project: project.to_owned(),
        pointer,
    }))
}

pub(crate) fn pointer(data: &DataDir, project: &str, label: &str) -> Result<Option<Pointer>> {
    read_json(data, &[KIND, project, BRANCHES, label])
}

pub(crate) fn deployment(data: &DataDir, project: &str, id: &str) -> Result<Option<Deployment>> {
    read_json(data, &[KIND, project, DEPLOYMENTS, id, RECORD_FILE])
}

/// Returns the index of a deployment, without checking its digest; `None` if the deployment was deleted.
pub(crate) fn index(data: &DataDir, project: &str, id: &str) -> Result<Option<SiteIndex>> {
    read_json(data, &[KIND, project, DEPLOYMENTS, id, INDEX])
}

impl LiveSite {
    /// Returns the index of the deployment after checking its digest; `None` if the project was deleted concurrently.
    pub(crate) fn index(&self, data: &DataDir) -> Result<Option<SiteIndex>> {
        let Some(content) = self.index_content(data)? else {
            return Ok(None);
        };
        serde_json::from_slice(&content)
            .map(Some)
            .map_err(|error| LocalError::damaged_file(self.index_path(), error))
    }

    /// Returns the content of the index file after checking its digest; `None` if it was deleted concurrently.
    pub(crate) fn index_content(&self, data: &DataDir) -> Result<Option<Vec<u8>>> {
        let parts = self.index_parts();
        let content = data.read(&parts)?;
        if content
            .as_ref()
            .is_some_and(|content| content_digest(content) != self.pointer.index)
        {
            let reason = "its digest differs from the deployed index";
            return Err(LocalError::damaged_file(self.index_path(), reason));
        }
        Ok(content)
    }

    fn index_path(&self) -> PathBuf {
        self.index_parts().iter().collect()
    }

    fn index_parts(&self) -> [&str; 5] {
        let deployment = &self.pointer.deployment;
        [KIND, &self.project, DEPLOYMENTS, deployment, INDEX]
    }

    /// Returns the path of the content of a file.
    pub(crate) fn content_parts<'a>(&'a self, entry: &'a SiteIndexEntry) -> [&'a str; 4] {
        [KIND, &self.project, CONTENT, &entry.digest]
    }
}
