//! What a comparison of registry and provider works on.

use serde::{Deserialize, Serialize};

use crate::kernel::{Environment, PlatformId, PlatformOwned, Slug};
use crate::provisioning::LaneKey;
use crate::use_case::provisioning::{JobInput, JobKind};

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Reconciliation {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    /// In this environment; in all when there is none.
    pub(in crate::use_case::registry) environment: Option<Environment>,
    pub(in crate::use_case::registry) repair: bool,
    pub(in crate::use_case::registry) delete_data: bool,
}

impl JobInput for Reconciliation {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }

    fn environment(&self) -> Option<Environment> {
        self.environment
    }
}

/// A kind that compares a platform's resources.
pub(super) trait ComparesResources: JobKind<Input = Reconciliation> {
    /// Where auth workers reach IAM.
    fn iam_url(&self) -> &str;
}
