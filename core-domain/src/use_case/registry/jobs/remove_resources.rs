//! The steps of a deprovisioning that remove the objects of one type: some at a time, with their entries, so that a large
//! platform goes on where it was.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::deprovision_input::Removal;
use super::removal::{delete_entry, remove_if_owned};
use crate::access::{Batches, PlatformAccess, PlatformWriter};
use crate::kernel::{Result, Timestamp};
use crate::port::{Mode, ResourceRef, UnitOfWork};
use crate::registry::{Resource, ResourceQuery, ResourceType, is_provider_name};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::use_case::registry::feature;

/// How many objects one attempt removes at the most.
const PORTION: usize = 100;

/// How long an attempt may take, and after which time it removes no further object.
const TIMEOUT: Duration = Duration::from_secs(600);
const WORKING_TIME: Duration = Duration::from_secs(360);

/// What a step, or an attempt that goes on later, leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Removed {
    /// What was entered after this instant is not covered.
    as_of: Timestamp,
    /// The names that this attempt removed.
    names: Vec<String>,
    /// How many of them belonged to somebody else.
    foreign: usize,
}

/// Removes the resources of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoveResources(pub(super) ResourceType);

#[async_trait]
impl<K: JobKind<Input = Removal>> JobStep<K> for RemoveResources {
    type Output = Removed;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(&self, _cx: &StepContext<'_, K>) -> Result<Observation<Removed>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Removed, StepError> {
        let mut removed = Removed {
            as_of: now(cx).await?,
            names: Vec::new(),
            foreign: 0,
        };
        let entered = self.entered(cx, removed.as_of).await?;
        let (portion, rest) = entered.split_at(entered.len().min(PORTION));
        for name in portion {
            if !removed.names.is_empty() && has_worked_enough(cx, &removed).await? {
                return Err(StepError::unfinished(&removed)?);
            }
            match self.remove(cx, name, &mut removed).await {
                Err(error) if removed.names.is_empty() => return Err(error),
                // What was removed is kept, and the error met again by the attempt that goes on.
                Err(_) => return Err(StepError::unfinished(&removed)?),
                Ok(()) => {}
            }
        }
        if !rest.is_empty() {
            return Err(StepError::unfinished(&removed)?);
        }
        for name in self.without_entry(cx, &entered).await? {
            self.remove(cx, &name, &mut removed).await?;
        }
        Ok(removed)
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Removed,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let entries = cx.input.entries(self.0, output.as_of);
        remove_entries(cx, &platform, uow, entries, |_| true).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Removed,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let is_removed = |entry: &Resource| {
            entry.resource_type == self.0
                && entry.created_at <= found.as_of
                && cx.input.covers(entry.environment)
        };
        for name in &found.names {
            let named = ResourceQuery::Named(name.clone());
            remove_entries(cx, &platform, uow, named, is_removed).await?;
        }
        Ok(())
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}

async fn now<K: JobKind<Input = Removal>>(cx: &StepContext<'_, K>) -> Result<Timestamp, StepError> {
    Ok(cx.store.begin(Mode::Auto).await?.now().await?)
}

async fn has_worked_enough<K: JobKind<Input = Removal>>(
    cx: &StepContext<'_, K>,
    removed: &Removed,
) -> Result<bool, StepError> {
    Ok(now(cx).await?.since(removed.as_of) >= WORKING_TIME)
}

/// Deletes those of these entries that `is_removed` names, with what leads to them.
async fn remove_entries<K: JobKind<Input = Removal>>(
    cx: &JobContext<'_, K>,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entries: ResourceQuery,
    is_removed: impl Fn(&Resource) -> bool + Send,
) -> Result<()> {
    let mut entries = Batches::<Resource>::of(entries);
    while let Some(batch) = entries.next(platform.records(uow)).await? {
        for entry in batch.iter().filter(|entry| is_removed(entry)) {
            delete_entry(cx, platform, uow, entry).await?;
        }
    }
    Ok(())
}

impl RemoveResources {
    async fn remove<K: JobKind<Input = Removal>>(
        &self,
        cx: &StepContext<'_, K>,
        name: &str,
        removed: &mut Removed,
    ) -> Result<(), StepError> {
        cx.guard().await?;
        let resource = ResourceRef {
            resource_type: self.0,
            name: name.to_owned(),
        };
        // An entry that somebody made for a thing that is not the platform's: the thing stays, the entry goes.
        let owned = remove_if_owned(cx, &cx.input.platform_id, &resource).await?;
        removed.foreign += usize::from(!owned);
        removed.names.push(name.to_owned());
        Ok(())
    }

    /// The names of entries that may mean something at the provider, newest first, each once.
    async fn entered<K: JobKind<Input = Removal>>(
        &self,
        cx: &StepContext<'_, K>,
        as_of: Timestamp,
    ) -> Result<Vec<String>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let (mut names, mut known) = (Vec::new(), BTreeSet::new());
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(names);
        };
        let mut resources = Batches::<Resource>::of(cx.input.entries(self.0, as_of));
        while let Some(batch) = resources.next(platform.records(uow.as_mut())).await? {
            let batch = batch.iter().map(|entry| entry.cf_name.as_str());
            let usable = batch.filter(|name| is_provider_name(name));
            names.extend(
                usable
                    .filter(|name| known.insert((*name).to_owned()))
                    .map(str::to_owned),
            );
        }
        Ok(names)
    }

    /// The names of what a job may have created without being able to say so; neither those of this attempt nor those
    /// that an earlier one has removed.
    async fn without_entry<K: JobKind<Input = Removal>>(
        &self,
        cx: &StepContext<'_, K>,
        removed: &[String],
    ) -> Result<Vec<String>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let mut names = cx.input.own_names(self.0);
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(names);
        };
        if self.0 == ResourceType::Worker {
            let environment = cx.input.environment;
            names.extend(feature::worker_names(&platform, uow.as_mut(), environment).await?);
        }
        let mut known: BTreeSet<String> = removed.iter().cloned().collect();
        let mut left = Vec::new();
        for name in names {
            let is_new = is_provider_name(&name) && known.insert(name.clone());
            if is_new && !self.was_removed(cx, &platform, uow.as_mut(), &name).await? {
                left.push(name);
            }
        }
        Ok(left)
    }

    /// Whether this job has removed an object of this name already, with its entry.
    async fn was_removed<K: JobKind<Input = Removal>>(
        &self,
        cx: &StepContext<'_, K>,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        name: &str,
    ) -> Result<bool> {
        let since = cx.job.started_at.unwrap_or(cx.job.created_at);
        let by_now = |entry: &Resource| {
            entry.resource_type == self.0 && entry.deleted_at.is_some_and(|at| at > since)
        };
        let named = ResourceQuery::EverNamed(name.to_owned());
        let mut entries = Batches::<Resource>::of(named);
        while let Some(batch) = entries.next(platform.records(uow)).await? {
            if batch.iter().any(|entry| by_now(entry)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
