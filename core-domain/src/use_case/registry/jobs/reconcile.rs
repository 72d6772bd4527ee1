//! `platform.reconcile`: compares what the registry knows of a platform with what the provider has, a step for every type
//! of resource and one for custom domains; mends what differs when asked to. What holds data is never removed unless that
//! was asked for, and what nobody knows is only reported.

use serde::{Deserialize, Serialize};

use super::reconcile_domains::CompareDomains;
use super::reconcile_resources::CompareResources;
use crate::kernel::{Environment, PlatformId, PlatformOwned, Slug};
use crate::provisioning::LaneKey;
use crate::registry::DEFAULT_RESOURCES;
use crate::use_case::provisioning::{JobInput, JobKind, Steps};

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

/// The kind.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct Reconcile {
    /// Where auth workers reach IAM.
    pub(in crate::use_case::registry) iam_url: String,
}

impl JobKind for Reconcile {
    const HOOKS: bool = false;
    const NAME: &'static str = "platform.reconcile";
    type Input = Reconciliation;

    fn steps() -> Steps<Self> {
        let in_order = DEFAULT_RESOURCES.map(|(of_type, _)| CompareResources(of_type));
        Steps::new().then_all(in_order).then(CompareDomains)
    }
}
