//! The steps of a deprovisioning that remove the objects of one type: a portion in each attempt, with its entries, so that a
//! large platform goes on where it was. A step ends when neither the registry nor the provider has anything left.

use std::time::Duration;

use async_trait::async_trait;

use super::deprovision_input::Removal;
use super::known::Known;
use super::removal::{Attempt, PORTION, RemovedObjects, TIMEOUT, delete_removed, portion_of};
use crate::kernel::Result;
use crate::port::{Mode, ResourceRef, UnitOfWork};
use crate::registry::{ResourceType, environment_in, is_provider_name};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::use_case::registry::feature;

/// Removes the resources of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoveResources(pub(super) ResourceType);

#[async_trait]
impl<K: JobKind<Input = Removal>> JobStep<K> for RemoveResources {
    type Output = RemovedObjects;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, K>,
    ) -> Result<Observation<RemovedObjects>, StepError> {
        Ok(Observation::Absent)
    }

    /// Removes what the registry knows, then the workers of features whose jobs could not say that they made them, then what
    /// is left at the provider because its entry was deleted before. Looks again until nothing is left.
    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<RemovedObjects, StepError> {
        let mut attempt = Attempt::begin(cx, &cx.input.platform_id).await?;
        self.remove_entered(cx, &mut attempt).await?;
        if self.0 == ResourceType::Worker {
            self.remove_workers_of_features(cx, &mut attempt).await?;
        }
        let mut is_anything_removed = false;
        for object in self.left_at_provider(cx, &attempt).await? {
            is_anything_removed |= attempt.remove(&object).await?;
        }
        if is_anything_removed {
            return Err(attempt.unfinished());
        }
        // Lists of providers may be late.
        for name in cx.input.own_names(self.0) {
            let object = self.named(name);
            if is_provider_name(&object.name) && !self.is_handled(cx, &attempt, &object).await? {
                attempt.remove(&object).await?;
            }
        }
        Ok(attempt.finish())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &RemovedObjects,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        delete_removed(cx, &platform, uow, output).await?;
        feature::end_removed(cx, &platform, uow, &output.features, &cx.job.id).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &RemovedObjects,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}

impl RemoveResources {
    fn named(self, name: String) -> ResourceRef {
        ResourceRef {
            resource_type: self.0,
            name,
        }
    }

    /// Removes the objects of entries, newest first.
    async fn remove_entered<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        attempt: &mut Attempt<'_, '_, K>,
    ) -> Result<(), StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(());
        };
        let entries = cx.input.entries(self.0, attempt.began());
        let entries = portion_of(&platform, uow.as_mut(), entries, |_| true).await?;
        drop(uow);
        for entry in entries {
            attempt.remove_entry(&entry).await?;
        }
        Ok(())
    }

    /// Removes the workers that features may have, those without an entry too.
    async fn remove_workers_of_features<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        attempt: &mut Attempt<'_, '_, K>,
    ) -> Result<(), StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(());
        };
        let (environment, limit) = (cx.input.environment, PORTION + 1);
        let features = feature::provided(&platform, uow.as_mut(), environment, limit).await?;
        drop(uow);
        for feature in features {
            let object = self.named(feature.worker_name(&platform.platform().slug));
            if !self.is_handled(cx, attempt, &object).await? {
                attempt.remove(&object).await?;
            }
            attempt.note_feature(&feature).await?;
        }
        Ok(())
    }

    /// Whether the job has removed the object already, with its entry, or it has an entry that is not covered.
    async fn is_handled<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        attempt: &Attempt<'_, '_, K>,
        object: &ResourceRef,
    ) -> Result<bool, StepError> {
        if attempt.has_removed(&object.name) {
            return Ok(true);
        }
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(false);
        };
        let known = Known::of(&platform, uow.as_mut(), object).await?;
        let since = cx.job.started_at.unwrap_or(cx.job.created_at);
        Ok(known.is_entered || known.deleted_at.is_some_and(|at| at > since))
    }

    /// Returns objects that the provider has of the platform and that are covered: a portion, and one more if there are more.
    async fn left_at_provider<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        attempt: &Attempt<'_, '_, K>,
    ) -> Result<Vec<ResourceRef>, StepError> {
        let platform = &cx.input.platform_id;
        let (mut left, mut cursor) = (Vec::new(), None);
        loop {
            let page = cx.infrastructure.owned(platform.as_str(), self.0, cursor);
            let page = page.await?;
            for object in page.objects {
                let object = self.named(object.name);
                if attempt.has_removed(&object.name) || !self.is_covered(cx, &object).await? {
                    continue;
                }
                // The list can be late, and still name removed objects.
                let found = cx.infrastructure.observe(&object).await?;
                if found.is_some_and(|found| found.belongs_to(&object.name, platform)) {
                    left.push(object);
                }
                if left.len() > PORTION {
                    return Ok(left);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(left);
            }
        }
    }

    /// Whether an object that has no entry is removed: always with all environments; with one if its name was derived for that
    /// environment, or if its last entry was there. What has an entry is removed with it.
    async fn is_covered<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        object: &ResourceRef,
    ) -> Result<bool, StepError> {
        if cx.input.environment.is_none() {
            return Ok(true);
        }
        let derived = environment_in(&object.name);
        if derived.is_some_and(|environment| !cx.input.covers(environment)) {
            return Ok(false);
        }
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(false);
        };
        let known = Known::of(&platform, uow.as_mut(), object).await?;
        let environment = derived.or(known.environment);
        Ok(
            !known.is_entered
                && environment.is_some_and(|environment| cx.input.covers(environment)),
        )
    }
}
