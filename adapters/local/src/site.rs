//! What lies in a pages project: deployments that never change, and a pointer a branch that says which one is served.
//!
//! ```text
//! pages/{project}/branches/{label}              which deployment the branch shows
//! pages/{project}/deployments/{id}/index.json   path -> digest, length, content type
//! pages/{project}/content/{digest}              the contents of all deployments, each once
//! pages/{project}/replaced/{id}                 that this deployment was replaced by a later one and removed
//! ```
//! A request never names a file: it is looked up in the index, and the index names files by digest.

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
pub(crate) const RECORD: &str = "deployment.json";

const KIND: &str = ResourceType::Pages.as_str();

/// The files of a deployment by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteIndex<P: Ord = String>(pub(crate) BTreeMap<P, Entry>);

/// One file of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    /// SHA-256 of the content; its file name and its entity tag.
    pub(crate) digest: String,
    /// Length in bytes.
    pub(crate) size: u64,
    /// Guessed from the path.
    pub(crate) content_type: String,
}

/// What a deployment says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deployment {
    pub(crate) deployment_key: String,
    /// The branch's label in addresses.
    pub(crate) label: String,
    /// Order of the deployments of the branch; a pointer never goes back to a lower one.
    pub(crate) sequence: u64,
    /// Digest of the index file.
    pub(crate) index: String,
    pub(crate) created_at: Timestamp,
}

/// Which deployment a branch shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pointer {
    pub(crate) deployment: String,
    pub(crate) sequence: u64,
    /// Digest of the deployment's index file: equal digests are equal sites.
    pub(crate) index: String,
}

/// A site that is served: a project and the deployment it shows at this instant.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) project: String,
    pub(crate) pointer: Pointer,
}

/// Where a project's branch is served, without domain: `{project}` or `{label}--{project}`.
pub(crate) fn address_label(project: &str, label: &str) -> String {
    if label == PRODUCTION {
        project.to_owned()
    } else {
        format!("{label}--{project}")
    }
}

/// The site of an address label; `None` when there is none. A project of exactly this name wins over a branch.
pub(crate) fn resolve(data: &DataDir, label: &str) -> Result<Option<Live>> {
    if let Some(live) = live(data, label, PRODUCTION)? {
        return Ok(Some(live));
    }
    match label.split_once("--") {
        Some((branch, project)) => live(data, project, branch),
        None => Ok(None),
    }
}

fn live(data: &DataDir, project: &str, label: &str) -> Result<Option<Live>> {
    let label_good = !label.is_empty() && label.bytes().all(is_label_byte);
    if check_name(project).is_err() || !label_good {
        return Ok(None);
    }
    Ok(pointer(data, project, label)?.map(|pointer| Live {
        project: project.to_owned(),
        pointer,
    }))
}

pub(crate) fn pointer(data: &DataDir, project: &str, label: &str) -> Result<Option<Pointer>> {
    read_json(data, &[KIND, project, BRANCHES, label])
}

pub(crate) fn deployment(data: &DataDir, project: &str, id: &str) -> Result<Option<Deployment>> {
    read_json(data, &[KIND, project, DEPLOYMENTS, id, RECORD])
}

/// The index of a deployment as it lies there; `None` when it was removed.
pub(crate) fn index(data: &DataDir, project: &str, id: &str) -> Result<Option<SiteIndex>> {
    read_json(data, &[KIND, project, DEPLOYMENTS, id, INDEX])
}

impl Live {
    /// The index of the deployment; `None` when the project was removed in the meantime.
    pub(crate) fn index(&self, data: &DataDir) -> Result<Option<SiteIndex>> {
        let parts = [
            KIND,
            &self.project,
            DEPLOYMENTS,
            &self.pointer.deployment,
            INDEX,
        ];
        let Some(content) = data.read(&parts)? else {
            return Ok(None);
        };
        let path: PathBuf = parts.iter().collect();
        if content_digest(&content) != self.pointer.index {
            let reason = "it is not the index that was deployed";
            return Err(LocalError::damaged(path, reason));
        }
        serde_json::from_slice(&content)
            .map(Some)
            .map_err(|error| LocalError::damaged(path, error))
    }

    /// Where the content of a file lies.
    pub(crate) fn content_parts<'a>(&'a self, entry: &'a Entry) -> [&'a str; 4] {
        [KIND, &self.project, CONTENT, &entry.digest]
    }
}
