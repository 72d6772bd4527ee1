//! What a deploy job works on, and with.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kernel::{DeploymentId, Environment, PlatformId, PlatformOwned};
use crate::port::SiteArchives;
use crate::provisioning::LaneKey;
use crate::registry::Branch;
use crate::use_case::provisioning::JobInput;
use crate::use_case::registry::{HasTarget, Target};

/// What the keys of uploads begin with.
pub(super) const BLOB_PREFIX: &str = "deploy-";

/// Where the upload of a deployment waits for its job.
#[must_use]
pub fn blob_key(deployment: &DeploymentId) -> String {
    let text = deployment.as_str().to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let text: String = text.chars().filter(|c| fits(*c)).take(100).collect();
    format!("{BLOB_PREFIX}{text}")
}

/// The kind of job that deploys a site, and what it unpacks uploads with.
#[derive(Clone, Debug)]
pub(super) struct DeploySite {
    pub(super) archives: Arc<dyn SiteArchives>,
}

/// What is to be deployed. An operator's retry of the job makes a new deployment record; the upload stays the one of the
/// first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployInput {
    /// The deployment that was asked for; names the upload.
    pub(super) deployment_id: DeploymentId,
    pub(super) project: String,
    pub(super) branch: Branch,
    #[serde(flatten)]
    pub(super) target: Target,
}

impl HasTarget for DeployInput {
    fn target(&self) -> &Target {
        &self.target
    }
}

impl JobInput for DeployInput {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        self.target.lane()
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.target.platform_id)
    }

    fn environment(&self) -> Option<Environment> {
        Some(self.target.environment)
    }
}
