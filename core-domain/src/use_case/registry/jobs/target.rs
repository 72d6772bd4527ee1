//! The target of a provisioning job.

use serde::{Deserialize, Serialize};

use crate::kernel::{Email, EntityId, Environment, PlatformId, PlatformOwned, Slug};
use crate::provisioning::LaneKey;
use crate::use_case::provisioning::JobInput;

/// The platform and environment of a provisioning job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The id of the platform.
    pub platform_id: PlatformId,
    /// The slug of the platform, a part of the names at the provider.
    pub slug: Slug,
    /// The entity that owns the resources; `None` means the platform's default tenant.
    pub entity_id: Option<EntityId>,
    /// The environment in which the resources run.
    pub environment: Environment,
    /// The billing plan of the platform.
    pub plan_tier: String,
    /// The email address for invoices.
    pub billing_email: Option<Email>,
}

impl JobInput for Target {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }

    fn entity_id(&self) -> Option<&EntityId> {
        self.entity_id.as_ref()
    }

    fn environment(&self) -> Option<Environment> {
        Some(self.environment)
    }
}

/// An input of a kind that creates resources of a platform.
pub trait HasTarget {
    /// Returns the platform and environment for which the resources are created.
    fn target(&self) -> &Target;
}

impl HasTarget for Target {
    fn target(&self) -> &Target {
        self
    }
}
