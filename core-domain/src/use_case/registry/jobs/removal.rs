//! The step that removes objects of a platform with their resource records, for all kinds that remove objects. It
//! removes a portion in each attempt.
//!
//! A kind declares which objects it removes with [`RemovesObjects`]. The step [`RemoveObjects`] runs attempts until
//! nothing is left.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::dns_record_removal;
use super::target::{PlatformKind, platform_id_of};
use crate::access::{Batches, PlatformWriter};
use crate::kernel::{
    Context, FeatureActivationId, PlatformId, ResourceId, Result, Stored, Timestamp,
};
use crate::port::{Mode, ProviderError, ResourceRef, UnitOfWork};
use crate::registry::{FeatureActivation, Resource, ResourceQuery, is_provider_name};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Undone,
};
use crate::use_case::registry::resource;

/// Maximum number of objects that one attempt removes.
pub(super) const MAX_OBJECTS_PER_ATTEMPT: usize = 100;

/// Maximum duration of an attempt.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The time after which an attempt removes no further object.
const WORKING_TIME: Duration = Duration::from_secs(360);

/// The output of an attempt of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemovedObjects {
    /// The names of the objects at the provider.
    pub(super) names: Vec<String>,
    /// The resources whose objects were removed.
    pub(super) resources: Vec<ResourceId>,
    /// The features whose workers no longer exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) features: Vec<FeatureActivationId>,
    /// The number of these objects that belong to another owner and were kept.
    pub(super) foreign: usize,
}

/// Objects that a kind removes at the provider.
#[async_trait]
pub(super) trait RemovesObjects<K: PlatformKind>: Debug + Send + Sync + 'static {
    /// Returns the name of the step, unique within the kind.
    fn name(&self) -> &'static str;

    /// Checks that the objects are still to be removed. Default: they are.
    ///
    /// # Errors
    /// [`StepError::Precondition`] if they are not.
    async fn ensure_needed(&self, _cx: &StepContext<'_, K>) -> Result<(), StepError> {
        Ok(())
    }

    /// Removes the objects, in the order of the attempt.
    ///
    /// # Errors
    /// [`StepError::Unfinished`] if more objects are left than one attempt removes.
    async fn remove(&self, attempt: &mut Attempt<'_, '_, K>) -> Result<(), StepError>;

    /// Writes the consequences of an attempt. Default: deletes the resources of the removed objects.
    ///
    /// # Errors
    /// Any error counts as a failed attempt of the step.
    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        removed: &RemovedObjects,
    ) -> Result<()> {
        delete_removed(cx, &cx.scope, uow, removed).await
    }
}

/// The step that removes the objects `D`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoveObjects<D>(pub(super) D);

#[async_trait]
impl<K: PlatformKind, D: RemovesObjects<K>> JobStep<K> for RemoveObjects<D> {
    type Output = RemovedObjects;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<RemovedObjects>, StepError> {
        self.0.ensure_needed(cx).await?;
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<RemovedObjects, StepError> {
        let mut attempt = Attempt::begin(cx, platform_id_of(cx.input)?).await?;
        self.0.remove(&mut attempt).await?;
        Ok(attempt.removed)
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &RemovedObjects,
    ) -> Result<()> {
        self.0.record(cx, uow, output).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &RemovedObjects,
    ) -> Result<()> {
        self.0.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}

/// One attempt of a step that removes objects.
#[derive(Debug)]
pub(super) struct Attempt<'a, 's, K: JobKind> {
    cx: &'a StepContext<'s, K>,
    platform: &'a PlatformId,
    /// The time at which the attempt started.
    started_at: Timestamp,
    removed: RemovedObjects,
}

impl<'a, 's, K: JobKind> Attempt<'a, 's, K> {
    /// Starts an attempt for a platform.
    async fn begin(
        cx: &'a StepContext<'s, K>,
        platform: &'a PlatformId,
    ) -> Result<Self, StepError> {
        let began = cx.store.begin(Mode::Auto).await?.now().await?;
        let removed = RemovedObjects::default();
        Ok(Self {
            cx,
            platform,
            started_at: began,
            removed,
        })
    }

    /// Returns the context of the step.
    pub(super) const fn cx(&self) -> &'a StepContext<'s, K> {
        self.cx
    }

    /// Returns the time at which the attempt started. Resources that were created later are not removed.
    pub(super) const fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Removes the objects of the resources of a query that `is_removed` selects, in the order of the query.
    ///
    /// # Errors
    /// Those of [`Attempt::remove`].
    pub(super) async fn remove_resources(
        &mut self,
        query: ResourceQuery,
        is_removed: impl Fn(&Resource) -> bool + Send,
    ) -> Result<(), StepError> {
        for resource in self.portion_of(query, is_removed).await? {
            self.remove_resource(&resource).await?;
        }
        Ok(())
    }

    /// Returns the first resources of a query that `is_removed` selects and that were created before the attempt
    /// started: one portion, and one more if there are more.
    pub(super) async fn portion_of(
        &self,
        query: ResourceQuery,
        is_removed: impl Fn(&Resource) -> bool + Send,
    ) -> Result<Vec<Stored<Resource>>, StepError> {
        let mut portion = Vec::new();
        let (mut uow, Some(platform)) = self.cx.read().await? else {
            return Ok(portion);
        };
        let until = self.started_at;
        let mut resources = Batches::<Resource>::of(query);
        while portion.len() <= MAX_OBJECTS_PER_ATTEMPT
            && let Some(batch) = resources.next(platform.records(uow.as_mut())).await?
        {
            let wanted =
                |resource: &Stored<Resource>| resource.created_at <= until && is_removed(resource);
            portion.extend(batch.into_iter().filter(wanted));
        }
        portion.truncate(MAX_OBJECTS_PER_ATTEMPT + 1);
        Ok(portion)
    }

    /// Returns whether this attempt has removed the object with this name.
    pub(super) fn has_removed(&self, name: &str) -> bool {
        self.removed.names.iter().any(|removed| removed == name)
    }

    /// Removes the object of a resource. If the provider does not accept names like that of the resource, it has no
    /// object, and only its record is added to the output.
    ///
    /// # Errors
    /// Those of [`Attempt::remove`].
    pub(super) async fn remove_resource(&mut self, resource: &Resource) -> Result<(), StepError> {
        if is_provider_name(resource.cf_name.as_str()) {
            let object = ResourceRef {
                resource_type: resource.resource_type,
                name: resource.cf_name.to_string(),
            };
            self.remove(&object).await?;
            self.removed.resources.push(resource.id.clone());
            return Ok(());
        }
        self.add_resource(resource).await
    }

    /// Adds a resource to the output without removing an object.
    ///
    /// # Errors
    /// [`StepError::Unfinished`] if the portion or the time of the attempt is used up.
    pub(super) async fn add_resource(&mut self, resource: &Resource) -> Result<(), StepError> {
        self.ensure_in_portion().await?;
        self.removed.resources.push(resource.id.clone());
        Ok(())
    }

    /// Adds a feature whose worker no longer exists to the output.
    ///
    /// # Errors
    /// [`StepError::Unfinished`] if the portion or the time of the attempt is used up.
    pub(super) async fn add_feature(
        &mut self,
        feature: &FeatureActivation,
    ) -> Result<(), StepError> {
        self.ensure_in_portion().await?;
        self.removed.features.push(feature.id.clone());
        Ok(())
    }

    /// Removes an object, unless it belongs to another owner. Returns whether it was removed.
    ///
    /// # Errors
    /// [`StepError::Unfinished`] if the portion or the time of the attempt is used up. Also returned for an error after
    /// other objects were removed; the next attempt meets that error again.
    pub(super) async fn remove(&mut self, object: &ResourceRef) -> Result<bool, StepError> {
        self.ensure_in_portion().await?;
        self.cx.guard().await?;
        let is_owned = match remove_if_owned(self.cx, self.platform, object).await {
            Err(error) if self.is_empty() => return Err(error),
            Err(_) => return Err(self.unfinished_error()),
            Ok(is_owned) => is_owned,
        };
        // People can create resources with names of other owners' objects. The object is kept and the resource is
        // deleted.
        self.removed.foreign += usize::from(!is_owned);
        self.removed.names.push(object.name.clone());
        Ok(is_owned)
    }

    /// Creates the error that ends the attempt and makes the engine start another attempt.
    pub(super) fn unfinished_error(&self) -> StepError {
        match StepError::unfinished(&self.removed) {
            Ok(unfinished) => unfinished,
            Err(error) => error.into(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the portion so far: the longest of the three lists.
    fn len(&self) -> usize {
        let removed = &self.removed;
        let counts = [
            removed.names.len(),
            removed.resources.len(),
            removed.features.len(),
        ];
        counts.into_iter().max().unwrap_or_default()
    }

    /// Returns [`StepError::Unfinished`] if the portion or the time of the attempt is used up. An empty attempt may
    /// always continue.
    async fn ensure_in_portion(&self) -> Result<(), StepError> {
        if self.is_empty() {
            return Ok(());
        }
        let now = self.cx.store.begin(Mode::Auto).await?.now().await?;
        if self.len() >= MAX_OBJECTS_PER_ATTEMPT || now.since(self.started_at) >= WORKING_TIME {
            return Err(self.unfinished_error());
        }
        Ok(())
    }
}

/// Removes an object, unless it belongs to another owner. Returns whether it was removed.
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

/// Removes an object that a cancelled job created, unless it belongs to another owner.
pub(super) async fn undo_creation<K: JobKind>(
    cx: &StepContext<'_, K>,
    platform: &PlatformId,
    object: &ResourceRef,
) -> Result<Undone, StepError> {
    if remove_if_owned(cx, platform, object).await? {
        Ok(Undone::Removed)
    } else {
        Ok(Undone::kept_because("it belongs to another owner"))
    }
}

/// Deletes the resources of the removed objects, unless they are already deleted.
pub(super) async fn delete_removed(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    removed: &RemovedObjects,
) -> Result<()> {
    for id in &removed.resources {
        let resource = platform.records::<Resource>(uow).find(id).await?;
        if let Some(resource) = resource.filter(|resource| resource.deleted_at.is_none()) {
            delete_resource(cx, platform, uow, &resource).await?;
        }
    }
    Ok(())
}

/// Deletes a resource whose object was removed, with its DNS records.
pub(super) async fn delete_resource(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &Stored<Resource>,
) -> Result<()> {
    dns_record_removal::delete_of_resource(cx, platform, uow, &resource.id).await?;
    resource::soft_delete(cx, platform, uow, resource).await
}
