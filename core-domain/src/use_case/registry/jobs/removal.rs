//! Removing objects of a platform with their entries, a portion in each attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::access::{Batches, PlatformAccess, PlatformWriter};
use crate::kernel::{
    Context, FeatureActivationId, PlatformId, ResourceId, Result, Stored, Timestamp,
};
use crate::port::{Mode, ProviderError, ResourceRef, UnitOfWork};
use crate::registry::{FeatureActivation, Resource, ResourceQuery, is_provider_name};
use crate::use_case::provisioning::{JobKind, StepContext, StepError, Undone};
use crate::use_case::registry::{dns_record, resource};

/// Maximum number of objects that one attempt removes.
pub(super) const PORTION: usize = 100;

/// The longest time that an attempt of a removal may take, and the time after which it removes no further object.
pub(super) const TIMEOUT: Duration = Duration::from_secs(600);
const WORKING_TIME: Duration = Duration::from_secs(360);

/// What the last attempt of a removal leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemovedObjects {
    /// The names at the provider of the objects.
    pub(super) names: Vec<String>,
    /// The entries that go with them.
    pub(super) entries: Vec<ResourceId>,
    /// The features whose workers no longer exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) features: Vec<FeatureActivationId>,
    /// The number of these objects that belong to another owner; they stay.
    pub(super) foreign: usize,
}

/// One attempt of a step that removes objects.
#[derive(Debug)]
pub(super) struct Attempt<'a, 's, K: JobKind> {
    cx: &'a StepContext<'s, K>,
    platform: &'a PlatformId,
    began: Timestamp,
    removed: RemovedObjects,
}

impl<'a, 's, K: JobKind> Attempt<'a, 's, K> {
    pub(super) async fn begin(
        cx: &'a StepContext<'s, K>,
        platform: &'a PlatformId,
    ) -> Result<Self, StepError> {
        let began = cx.store.begin(Mode::Auto).await?.now().await?;
        let removed = RemovedObjects::default();
        Ok(Self {
            cx,
            platform,
            began,
            removed,
        })
    }

    /// When the attempt began. Entries that are newer are not covered.
    pub(super) const fn began(&self) -> Timestamp {
        self.began
    }

    pub(super) fn has_removed(&self, name: &str) -> bool {
        self.removed.names.iter().any(|removed| removed == name)
    }

    /// Removes the object of an entry. An entry whose name the provider does not take has none.
    ///
    /// # Errors
    /// As [`Attempt::remove`].
    pub(super) async fn remove_entry(&mut self, entry: &Resource) -> Result<(), StepError> {
        if is_provider_name(entry.cf_name.as_str()) {
            let object = ResourceRef {
                resource_type: entry.resource_type,
                name: entry.cf_name.to_string(),
            };
            self.remove(&object).await?;
            self.removed.entries.push(entry.id.clone());
            return Ok(());
        }
        self.note_entry(entry).await
    }

    /// Notes that an entry stands for nothing that is to be removed.
    ///
    /// # Errors
    /// [`StepError::Unfinished`] if the portion or the time of the attempt is used up.
    pub(super) async fn note_entry(&mut self, entry: &Resource) -> Result<(), StepError> {
        self.ensure_in_portion().await?;
        self.removed.entries.push(entry.id.clone());
        Ok(())
    }

    /// Notes that the worker of a feature no longer exists.
    ///
    /// # Errors
    /// [`StepError::Unfinished`] if the portion or the time of the attempt is used up.
    pub(super) async fn note_feature(
        &mut self,
        feature: &FeatureActivation,
    ) -> Result<(), StepError> {
        self.ensure_in_portion().await?;
        self.removed.features.push(feature.id.clone());
        Ok(())
    }

    /// Removes an object, unless it belongs to another owner; returns whether it was removed.
    ///
    /// # Errors
    /// [`StepError::Unfinished`] if the portion or the time of the attempt is used up, and for an error after other objects
    /// were removed: the next attempt meets the error again.
    pub(super) async fn remove(&mut self, object: &ResourceRef) -> Result<bool, StepError> {
        self.ensure_in_portion().await?;
        self.cx.guard().await?;
        let is_owned = match remove_if_owned(self.cx, self.platform, object).await {
            Err(error) if self.is_empty() => return Err(error),
            Err(_) => return Err(self.unfinished()),
            Ok(is_owned) => is_owned,
        };
        // People can enter objects of other owners: the object stays, and the entry is deleted.
        self.removed.foreign += usize::from(!is_owned);
        self.removed.names.push(object.name.clone());
        Ok(is_owned)
    }

    /// Ends the attempt with everything removed.
    pub(super) fn finish(self) -> RemovedObjects {
        self.removed
    }

    /// The end of an attempt after which another one goes on.
    pub(super) fn unfinished(&self) -> StepError {
        match StepError::unfinished(&self.removed) {
            Ok(unfinished) => unfinished,
            Err(error) => error.into(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        let removed = &self.removed;
        let counts = [
            removed.names.len(),
            removed.entries.len(),
            removed.features.len(),
        ];
        counts.into_iter().max().unwrap_or_default()
    }

    async fn ensure_in_portion(&self) -> Result<(), StepError> {
        if self.is_empty() {
            return Ok(());
        }
        let now = self.cx.store.begin(Mode::Auto).await?.now().await?;
        if self.len() >= PORTION || now.since(self.began) >= WORKING_TIME {
            return Err(self.unfinished());
        }
        Ok(())
    }
}

/// Removes an object, unless it belongs to another owner; returns whether it was removed.
pub(super) async fn remove_if_owned<K: JobKind>(
    cx: &StepContext<'_, K>,
    platform: &PlatformId,
    object: &ResourceRef,
) -> Result<bool, StepError> {
    match cx.infrastructure.remove(object, platform.as_str()).await {
        Err(ProviderError::NameTaken(_)) => Ok(false),
        outcome => Ok(outcome.map(|()| true)?),
    }
}

/// Removes an object that a cancelled job created.
pub(super) async fn take_back<K: JobKind>(
    cx: &StepContext<'_, K>,
    platform: &PlatformId,
    object: &ResourceRef,
) -> Result<Undone, StepError> {
    if remove_if_owned(cx, platform, object).await? {
        Ok(Undone::TakenBack)
    } else {
        Ok(Undone::left("it belongs to another owner"))
    }
}

/// Returns the first entries that answer a query and are to be removed: a portion, and one more if there are more.
pub(super) async fn portion_of(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    query: ResourceQuery,
    is_removed: impl Fn(&Resource) -> bool + Send,
) -> Result<Vec<Stored<Resource>>> {
    let mut portion = Vec::new();
    let mut entries = Batches::<Resource>::of(query);
    while portion.len() <= PORTION
        && let Some(batch) = entries.next(platform.records(uow)).await?
    {
        portion.extend(batch.into_iter().filter(|entry| is_removed(entry)));
    }
    portion.truncate(PORTION + 1);
    Ok(portion)
}

/// Deletes the entries of the removed objects, unless they are deleted already.
pub(super) async fn delete_removed(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    removed: &RemovedObjects,
) -> Result<()> {
    for id in &removed.entries {
        let entry = platform.records::<Resource>(uow).find(id).await?;
        if let Some(entry) = entry.filter(|entry| entry.deleted_at.is_none()) {
            delete_entry(cx, platform, uow, &entry).await?;
        }
    }
    Ok(())
}

/// Deletes the entries of what was removed, with the DNS records that lead to it.
pub(super) async fn delete_entries(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entries: Vec<Stored<Resource>>,
) -> Result<()> {
    for entry in entries {
        delete_entry(cx, platform, uow, &entry).await?;
    }
    Ok(())
}

/// Deletes the entry of what was removed, with the DNS records that lead to it.
pub(super) async fn delete_entry(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entry: &Stored<Resource>,
) -> Result<()> {
    dns_record::delete_leading_to(cx, platform, uow, &entry.id).await?;
    resource::soft_delete(cx, platform, uow, entry).await
}
