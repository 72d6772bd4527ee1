//! What a provisioning job works for.

use serde::{Deserialize, Serialize};

use crate::kernel::{Email, EntityId, Environment, PlatformId, PlatformOwned, Slug};
use crate::provisioning::LaneKey;
use crate::use_case::provisioning::JobInput;

/// The platform and environment a job works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The platform.
    pub platform_id: PlatformId,
    /// Its slug; part of the names at the provider.
    pub slug: Slug,
    /// The entity the resources belong to; the platform's own tenant when not said.
    pub entity_id: Option<EntityId>,
    /// Where it all runs.
    pub environment: Environment,
    /// The plan it is for.
    pub plan_tier: String,
    /// Where bills go.
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

/// The input of a kind that creates resources of a platform.
pub trait HasTarget {
    /// What they are created for.
    fn target(&self) -> &Target;
}

impl HasTarget for Target {
    fn target(&self) -> &Target {
        self
    }
}
