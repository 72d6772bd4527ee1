//! `platform.deprovision`: removes what the registry knows of a platform, and what a job may have created without being
//! able to say so: hostnames first, then a step for every type, in the opposite order of creation.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::auth_worker::auth_ref;
use super::remove_hostnames::RemoveHostnames;
use super::remove_resources::RemoveResources;
use crate::kernel::{Environment, PlatformId, PlatformOwned, Result, Slug, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{DEPROVISION, LaneKey, LanePlace};
use crate::registry::{DEFAULT_RESOURCES, ResourceQuery, ResourceType, resource_name};
use crate::use_case::provisioning::{JobContext, JobInput, JobKind, Steps};
use crate::use_case::registry::platform::{Covered, finish_deprovision};

/// What is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Removal {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    /// In this environment; in all when there is none.
    pub(in crate::use_case::registry) environment: Option<Environment>,
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

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Deprovision;

#[async_trait]
impl JobKind for Deprovision {
    const NAME: &'static str = DEPROVISION;
    const VERSION: i64 = 2;
    const PLACE: LanePlace = LanePlace::Front;
    type Input = Removal;

    fn steps() -> Steps<Self> {
        let newest_first = DEFAULT_RESOURCES.into_iter().rev();
        let hostnames = Steps::new().then(RemoveHostnames);
        hostnames.then_all(newest_first.map(|(resource_type, _)| RemoveResources(resource_type)))
    }

    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let covered = Covered {
            environment: cx.input.environment,
            everything: cx.input.environment.is_none() && !cx.job.forced,
        };
        finish_deprovision(cx, &platform, uow, covered).await
    }
}
