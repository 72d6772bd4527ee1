//! What a deprovisioning works on.

use serde::{Deserialize, Serialize};

use super::auth_worker::auth_ref;
use crate::access::PlatformAccess;
use crate::kernel::{Environment, PlatformId, PlatformOwned, Slug, Timestamp};
use crate::provisioning::LaneKey;
use crate::registry::{ResourceQuery, ResourceType, resource_name};
use crate::use_case::provisioning::JobInput;

/// What is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Removal {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    /// In this environment; in all when there is none.
    pub(in crate::use_case::registry) environment: Option<Environment>,
    /// Whether the platform's other unfinished jobs are cancelled first. Default: `false`.
    #[serde(default)]
    pub(in crate::use_case::registry) cancels_jobs: bool,
}

impl JobInput for Removal {
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

impl Removal {
    /// Creates the input for one environment of a platform; `None` means all environments.
    pub(in crate::use_case::registry) fn of(
        platform: &PlatformAccess,
        environment: Option<Environment>,
    ) -> Self {
        Self {
            platform_id: platform.id().clone(),
            slug: platform.platform().slug.clone(),
            environment,
            cancels_jobs: false,
        }
    }

    /// Whether what runs in an environment is removed.
    pub(super) fn covers(&self, environment: Environment) -> bool {
        self.environment.is_none_or(|only| only == environment)
    }

    /// The entries of a type that are removed.
    pub(super) fn entries(&self, resource_type: ResourceType, until: Timestamp) -> ResourceQuery {
        ResourceQuery::OfTypeUntil {
            resource_type,
            environment: self.environment,
            until,
        }
    }

    /// The names of what provisioning creates.
    pub(super) fn own_names(&self, resource_type: ResourceType) -> Vec<String> {
        let (platform, slug) = (&self.platform_id, &self.slug);
        let all = Environment::ALL.iter().copied();
        let covered = all.filter(|environment| self.covers(*environment));
        let names = covered.flat_map(|environment| {
            let default = resource_name(platform, slug, environment, resource_type);
            let is_worker = resource_type == ResourceType::Worker;
            let auth = is_worker.then(|| auth_ref((platform, slug, environment)).name);
            std::iter::once(default).chain(auth)
        });
        names.collect()
    }
}
