//! `platform.deprovision`: removes what the registry knows of a platform, and what a job may have made without being
//! able to say so; a step for every type, in the opposite order of making.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{as_asked_by, purge, read_input, to_input};
use crate::kernel::{Context, Environment, PageRequest, PlatformId, Result, Slug, Timestamp};
use crate::port::{Mode, ProviderError, ResourceRef, UnitOfWork};
use crate::provisioning::{
    DEPROVISION, Job, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::registry::{PURPOSES, ResourceQuery, ResourceType, is_provider_name, resource_name};
use crate::use_case::registry::resources;

pub(in crate::use_case::registry) const NAME: &str = DEPROVISION;

/// How many rows are read at once.
const BATCH: u32 = 100;

/// A step for every type, newest first.
pub(in crate::use_case::registry) const STEPS: [&str; 6] = {
    let mut steps = [""; 6];
    let mut at = 0;
    while at < steps.len() {
        steps[at] = PURPOSES[steps.len() - 1 - at].0.as_str();
        at += 1;
    }
    steps
};

/// What is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Removal {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    /// In this environment; in all when there is none.
    pub(in crate::use_case::registry) environment: Option<Environment>,
}

impl Removal {
    pub(in crate::use_case::registry) fn to_input(&self) -> Value {
        to_input(self)
    }

    fn rows(&self, resource_type: ResourceType, until: Timestamp) -> ResourceQuery {
        ResourceQuery::LivingOfType {
            platform_id: self.platform_id.clone(),
            resource_type,
            environment: self.environment,
            until,
        }
    }

    /// The names of what provisioning makes.
    fn own_names(&self, resource_type: ResourceType) -> Vec<String> {
        let all = Environment::ALL.iter().copied();
        let wanted = all.filter(|e| self.environment.is_none_or(|only| only == *e));
        wanted
            .map(|e| resource_name(&self.platform_id, &self.slug, e, resource_type))
            .collect()
    }
}

/// The kind.
#[derive(Debug)]
pub(super) struct Deprovision {
    removers: [RemoveResources; 6],
}

impl Deprovision {
    pub(super) fn new() -> Self {
        Self {
            removers: PURPOSES.map(|(resource_type, _)| RemoveResources(resource_type)),
        }
    }
}

#[async_trait]
impl JobKind for Deprovision {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&self, name: &str) -> Option<&dyn JobStep> {
        let named = |r: &&RemoveResources| r.0.as_str() == name;
        self.removers.iter().find(named).map(|r| r as &dyn JobStep)
    }

    async fn completed(&self, cx: &Context, uow: &mut dyn UnitOfWork, job: &Job) -> Result<()> {
        let removal: Removal = read_input(job)?;
        let cx = as_asked_by(cx, job);
        let live = removal.environment.is_none_or(|e| e == Environment::Prod);
        purge::finish(&cx, uow, &removal.platform_id, live).await
    }
}

/// Removes the resources of one type.
#[derive(Clone, Copy, Debug)]
struct RemoveResources(ResourceType);

#[async_trait]
impl JobStep for RemoveResources {
    async fn observe(&self, _cx: &StepContext<'_>) -> Result<Observation, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError> {
        let removal: Removal = read_input(cx.job)?;
        let mut uow = cx.store.begin(Mode::Auto).await?;
        let as_of = uow.now().await?;
        drop(uow);
        let names = self.names(cx, &removal, as_of).await?;
        let mut foreign = 0;
        for name in &names {
            cx.guard().await?;
            let resource = ResourceRef {
                resource_type: self.0,
                name: name.clone(),
            };
            let removed = cx
                .infrastructure
                .remove(&resource, removal.platform_id.as_str())
                .await;
            match removed {
                // An entry that somebody made for a thing that is not the platform's: the thing stays, the entry goes.
                Err(ProviderError::NameTaken(_)) => foreign += 1,
                outcome => outcome?,
            }
        }
        Ok(json!({ "asOf": as_of, "names": names.len(), "foreign": foreign }))
    }

    async fn record(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        job: &Job,
        output: &Value,
    ) -> Result<()> {
        let removal: Removal = read_input(job)?;
        let cx = as_asked_by(cx, job);
        let as_of = output["asOf"].as_str().and_then(Timestamp::parse_rfc3339);
        let rows = removal.rows(self.0, as_of.unwrap_or(Timestamp::EPOCH));
        loop {
            let batch = uow.resources().list(&rows, BATCH).await?;
            if batch.is_empty() {
                return Ok(());
            }
            for resource in batch {
                resources::bury(&cx, uow, &resource).await?;
            }
        }
    }

    fn timeout(&self) -> std::time::Duration {
        std::time::Duration::from_secs(600)
    }
}

impl RemoveResources {
    /// Every name that may mean something at the provider, newest entry first, each once.
    async fn names(
        &self,
        cx: &StepContext<'_>,
        removal: &Removal,
        as_of: Timestamp,
    ) -> Result<Vec<String>, StepError> {
        let mut names: Vec<String> = Vec::new();
        let mut page = PageRequest::first(BATCH);
        loop {
            let mut uow = cx.store.begin(Mode::Read).await?;
            let rows = removal.rows(self.0, as_of);
            let found = uow.resources().page(&rows, &page).await?;
            names.extend(found.items.iter().map(|r| r.cf_name.clone()));
            page.cursor = found.next;
            if page.cursor.is_none() {
                break;
            }
        }
        names.extend(removal.own_names(self.0));
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| is_provider_name(name) && seen.insert(name.clone()));
        Ok(names)
    }
}
