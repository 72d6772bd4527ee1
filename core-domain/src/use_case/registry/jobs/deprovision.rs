//! `platform.deprovision`: removes what the registry knows of a platform, and what a job may have created without being
//! able to say so; a step for every type, in the opposite order of creation.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::access::{Batches, PlatformAccess};
use crate::kernel::{Environment, PlatformId, PlatformOwned, Result, Slug, Timestamp};
use crate::port::{Mode, ProviderError, ResourceRef, UnitOfWork};
use crate::provisioning::{DEPROVISION, LaneKey, LanePlace};
use crate::registry::{
    DEFAULT_RESOURCES, Resource, ResourceQuery, ResourceType, is_provider_name, resource_name,
};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::platform::{Covered, finish_deprovision};
use crate::use_case::registry::{dns, feature, resource};

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
    fn entries(&self, resource_type: ResourceType, until: Timestamp) -> ResourceQuery {
        ResourceQuery::OfTypeUntil {
            resource_type,
            environment: self.environment,
            until,
        }
    }

    /// The names of what provisioning creates.
    fn own_names(&self, resource_type: ResourceType) -> Vec<String> {
        let all = Environment::ALL.iter().copied();
        let wanted = all.filter(|e| self.environment.is_none_or(|only| only == *e));
        wanted
            .map(|e| resource_name(&self.platform_id, &self.slug, e, resource_type))
            .collect()
    }
}

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Deprovision;

#[async_trait]
impl JobKind for Deprovision {
    const NAME: &'static str = DEPROVISION;
    const PLACE: LanePlace = LanePlace::Front;
    type Input = Removal;

    fn steps() -> Steps<Self> {
        let newest_first = DEFAULT_RESOURCES.into_iter().rev();
        Steps::new().then_all(newest_first.map(|(resource_type, _)| RemoveResources(resource_type)))
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

/// What a step leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    /// What was entered after this instant is not covered.
    as_of: Timestamp,
    /// How many names were removed.
    names: usize,
    /// How many of them belonged to somebody else.
    foreign: usize,
}

/// Removes the resources of one type.
#[derive(Clone, Copy, Debug)]
struct RemoveResources(ResourceType);

#[async_trait]
impl JobStep<Deprovision> for RemoveResources {
    type Output = Removed;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, Deprovision>,
    ) -> Result<Observation<Removed>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, Deprovision>) -> Result<Removed, StepError> {
        let mut uow = cx.store.begin(Mode::Auto).await?;
        let as_of = uow.now().await?;
        drop(uow);
        let names = self.names(cx, as_of).await?;
        let mut foreign = 0;
        for name in &names {
            cx.guard().await?;
            let resource = ResourceRef {
                resource_type: self.0,
                name: name.clone(),
            };
            let owner = cx.input.platform_id.as_str();
            match cx.infrastructure.remove(&resource, owner).await {
                // An entry that somebody made for a thing that is not the platform's: the thing stays, the entry goes.
                Err(ProviderError::NameTaken(_)) => foreign += 1,
                outcome => outcome?,
            }
        }
        Ok(Removed {
            as_of,
            names: names.len(),
            foreign,
        })
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Deprovision>,
        uow: &mut dyn UnitOfWork,
        output: &Removed,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let entries = cx.input.entries(self.0, output.as_of);
        let mut resources = Batches::<Resource>::of(entries);
        while let Some(batch) = resources.next(platform.records(uow)).await? {
            for found in batch {
                dns::delete_leading_to(cx, &platform, uow, &found.id).await?;
                resource::soft_delete(cx, &platform, uow, &found).await?;
            }
        }
        Ok(())
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

impl RemoveResources {
    /// Every name that may mean something at the provider, newest entry first, each once.
    async fn names(
        &self,
        cx: &StepContext<'_, Deprovision>,
        as_of: Timestamp,
    ) -> Result<Vec<String>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let mut names = match cx.platform(uow.as_mut()).await? {
            Some(platform) => {
                let mut names = self.entered(cx, &platform, uow.as_mut(), as_of).await?;
                if self.0 == ResourceType::Worker {
                    let environment = cx.input.environment;
                    let features = feature::worker_names(&platform, uow.as_mut(), environment);
                    names.extend(features.await?);
                }
                names
            }
            None => Vec::new(),
        };
        names.extend(cx.input.own_names(self.0));
        let mut seen = BTreeSet::new();
        names.retain(|name| is_provider_name(name) && seen.insert(name.clone()));
        Ok(names)
    }

    async fn entered(
        &self,
        cx: &StepContext<'_, Deprovision>,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        as_of: Timestamp,
    ) -> Result<Vec<String>, StepError> {
        let entries = cx.input.entries(self.0, as_of);
        let mut names = Vec::new();
        let mut resources = Batches::<Resource>::of(entries);
        while let Some(batch) = resources.next(platform.records(uow)).await? {
            names.extend(batch.iter().map(|r| r.cf_name.to_string()));
        }
        Ok(names)
    }
}
