//! `platform.deprovision`: removes the infrastructure of a platform.
//!
//! It removes the objects that the registry knows, objects that jobs created without recording them, and all other
//! objects of the platform at the provider. Hostnames come first, then one step for each resource type, in the reverse
//! order of creation. A step ends when nothing of its type is left.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::custom_domain_removal::{clear_hostname_id, may_be_served};
use super::hostname::stop_serving;
use super::object::ObjectRecords;
use super::platform_object::{PlatformEnvironment, PlatformObject};
use super::removal::{
    Attempt, MAX_OBJECTS_PER_ATTEMPT, RemoveObjects, RemovedObjects, RemovesObjects, delete_removed,
};
use crate::access::{
    AuditEvent, Batches, PlatformAccess, PlatformWriter, SystemScope, audited, remove_records,
    unaudited, unowned_records,
};
use crate::kernel::{
    Context, CustomDomainId, Environment, PlatformId, PlatformOwned, Result, Slug, Stored,
    Timestamp,
};
use crate::port::{ResourceRef, UnitOfWork};
use crate::provisioning::{DEPROVISION, LaneKey, LanePlace};
use crate::registry::{
    CustomDomain, CustomDomainQuery, DEFAULT_RESOURCES, DnsRecord, Platform, PlatformQuery,
    Resource, ResourceQuery, ResourceType, environment_in, is_provider_name,
};
use crate::use_case::iam::organization;
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::feature_state::EndScope;
use crate::use_case::registry::{deployment, feature_state, workspace_stack};
use crate::use_case::shared::webhook;
use crate::use_case::{iam, provisioning};

/// The job kind `platform.deprovision`.
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
        let hostnames = Steps::new().step(CancelJobs).step(RemoveHostnames);
        hostnames.steps(newest_first.map(|(of_type, _)| RemoveObjects(AllOfType(of_type))))
    }

    fn plan(input: &Removal) -> Vec<String> {
        let names = Self::steps().names().into_iter();
        let wanted = names.filter(|name| *name != CANCEL_JOBS || input.cancels_jobs);
        wanted.map(str::to_owned).collect()
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        let covered = DeprovisionScope {
            environment: cx.input.environment,
            everything: cx.input.environment.is_none() && !cx.job.forced,
        };
        finish_deprovision(cx, &cx.scope, uow, covered).await
    }
}

/// The input of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Removal {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    /// The environment that is removed; `None` means all environments.
    pub(in crate::use_case::registry) environment: Option<Environment>,
    /// Whether the job first cancels the platform's other unfinished jobs. Default: `false`.
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

    /// Returns whether the environment is removed.
    pub(super) fn covers(&self, environment: Environment) -> bool {
        self.environment.is_none_or(|only| only == environment)
    }

    /// Selects the resources of a type that are removed: those that were created up to `until`.
    pub(super) fn resources(&self, resource_type: ResourceType, until: Timestamp) -> ResourceQuery {
        ResourceQuery::OfTypeUntil {
            resource_type,
            environment: self.environment,
            until,
        }
    }

    /// Returns the objects of a type that jobs create for every platform.
    pub(super) fn own_objects(&self, resource_type: ResourceType) -> Vec<ResourceRef> {
        let all = Environment::ALL.iter().copied();
        let covered = all.filter(|environment| self.covers(*environment));
        let objects = covered.flat_map(|environment| {
            let at = PlatformEnvironment {
                platform_id: &self.platform_id,
                slug: &self.slug,
                environment,
            };
            PlatformObject::of_type(resource_type).map(move |object| object.in_environment(at))
        });
        objects.collect()
    }
}

/// The name of the step that cancels jobs.
pub(super) const CANCEL_JOBS: &str = "jobs";

/// The reason recorded with each cancelled job.
const REASON: &str = "The platform is being removed for good.";

/// Cancels the platform's other unfinished jobs. Each attempt cancels one portion in the unit of work that ends the
/// attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelJobs;

#[async_trait]
impl<K: JobKind<Input = Removal>> JobStep<K> for CancelJobs {
    const HAS_RECORD: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        CANCEL_JOBS
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<()>, StepError> {
        let (mut uow, Some(platform)) = cx.read().await? else {
            return Ok(Observation::Present(()));
        };
        let own = BTreeSet::from([cx.job.id.clone()]);
        let other = provisioning::find_unfinished(&platform, uow.as_mut(), &own).await?;
        Ok(other.map_or(Observation::Present(()), |_| Observation::Absent))
    }

    async fn apply(&self, _cx: &StepContext<'_, K>) -> Result<(), StepError> {
        Err(StepError::unfinished(&())?)
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        cx.cancel_other_jobs(uow, REASON).await?;
        Ok(())
    }
}

/// Stops serving the custom domains that point to removed objects. If all environments are removed, also covers deleted
/// domains, whose own job may have been cancelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoveHostnames;

#[async_trait]
impl<K: JobKind<Input = Removal>> JobStep<K> for RemoveHostnames {
    /// The domains that are no longer served.
    type Output = Vec<CustomDomainId>;

    fn name(&self) -> &'static str {
        "hostnames"
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, K>,
    ) -> Result<Observation<Self::Output>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Self::Output, StepError> {
        let served = list_served_domains(cx).await?;
        let is_entered = |domain: &Stored<CustomDomain>| domain.cf_hostname_id.is_some();
        let (entered, asked_for): (Vec<_>, Vec<_>) = served.into_iter().partition(is_entered);
        let mut removed = Vec::new();
        for domain in entered.iter().take(MAX_OBJECTS_PER_ATTEMPT) {
            match remove(cx, domain).await {
                Err(error) if removed.is_empty() => return Err(error),
                Err(_) => return Err(StepError::unfinished(&removed)?),
                Ok(()) => removed.push(domain.id.clone()),
            }
        }
        if entered.len() > MAX_OBJECTS_PER_ATTEMPT {
            return Err(StepError::unfinished(&removed)?);
        }
        // These have no id at the provider, so nothing records that they are done. They are handled in the last
        // attempt.
        for domain in &asked_for {
            remove(cx, domain).await?;
        }
        Ok(removed)
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Self::Output,
    ) -> Result<()> {
        for domain in output {
            clear_hostname_id(cx, &cx.scope, uow, domain, |_| true).await?;
        }
        Ok(())
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Self::Output,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// Stops serving one domain.
async fn remove<K: JobKind<Input = Removal>>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<(), StepError> {
    cx.guard().await?;
    stop_serving(cx, domain).await
}

/// Returns the domains that may be served and point to a removed object.
async fn list_served_domains<K: JobKind<Input = Removal>>(
    cx: &StepContext<'_, K>,
) -> Result<Vec<Stored<CustomDomain>>, StepError> {
    let mut served = Vec::new();
    let (mut uow, Some(platform)) = cx.read().await? else {
        return Ok(served);
    };
    let all = CustomDomainQuery::All {
        deleted: cx.input.environment.is_none(),
    };
    let mut domains = Batches::<CustomDomain>::of(all);
    while let Some(batch) = domains.next(platform.records(uow.as_mut())).await? {
        for domain in batch {
            if may_be_served(uow.as_mut(), &domain).await?
                && is_covered(cx, &platform, uow.as_mut(), &domain).await?
            {
                served.push(domain);
            }
        }
    }
    Ok(served)
}

/// Returns whether the domain points to a resource in a removed environment.
async fn is_covered<K: JobKind<Input = Removal>>(
    cx: &StepContext<'_, K>,
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomain,
) -> Result<bool> {
    if cx.input.environment.is_none() {
        return Ok(true);
    }
    let records = platform.records::<DnsRecord>(uow);
    let Some(record) = records.find(&domain.dns_record_id).await? else {
        return Ok(false);
    };
    let resources = platform.records::<Resource>(uow);
    let resource = resources.find(&record.resource_id).await?;
    Ok(resource.is_some_and(|resource| cx.input.covers(resource.environment)))
}

/// The platform's objects of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllOfType(pub(super) ResourceType);

#[async_trait]
impl<K: JobKind<Input = Removal>> RemovesObjects<K> for AllOfType {
    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    /// Removes the objects of resources, then unrecorded workers of features, then objects that are left at the
    /// provider because their resource was deleted earlier. Repeats this until nothing is left.
    async fn remove(&self, attempt: &mut Attempt<'_, '_, K>) -> Result<(), StepError> {
        let cx = attempt.cx();
        let resources = cx.input.resources(self.0, attempt.started_at());
        attempt.remove_resources(resources, |_| true).await?;
        if self.0 == ResourceType::Worker {
            self.remove_workers_of_features(cx, attempt).await?;
        }
        let mut is_anything_removed = false;
        for object in self.left_at_provider(cx, attempt).await? {
            is_anything_removed |= attempt.remove(&object).await?;
        }
        if is_anything_removed {
            return Err(attempt.unfinished_error());
        }
        // A provider's list can be outdated, so the names that provisioning derives are removed too.
        for object in cx.input.own_objects(self.0) {
            if is_provider_name(&object.name) && !self.is_handled(cx, attempt, &object).await? {
                attempt.remove(&object).await?;
            }
        }
        Ok(())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        removed: &RemovedObjects,
    ) -> Result<()> {
        delete_removed(cx, &cx.scope, uow, removed).await?;
        feature_state::end_removed(cx, &cx.scope, uow, &removed.features, &cx.job.id).await
    }
}

impl AllOfType {
    /// Returns the reference to an object of this type.
    fn resource_ref(self, name: String) -> ResourceRef {
        ResourceRef {
            resource_type: self.0,
            name,
        }
    }

    /// Removes the workers that features may have, including workers without a resource.
    async fn remove_workers_of_features<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        attempt: &mut Attempt<'_, '_, K>,
    ) -> Result<(), StepError> {
        let (mut uow, Some(platform)) = cx.read().await? else {
            return Ok(());
        };
        let (environment, limit) = (cx.input.environment, MAX_OBJECTS_PER_ATTEMPT + 1);
        let features =
            feature_state::list_with_worker(&platform, uow.as_mut(), environment, limit).await?;
        drop(uow);
        for feature in features {
            let object = self.resource_ref(feature.worker_name(&platform.platform().slug));
            if !self.is_handled(cx, attempt, &object).await? {
                attempt.remove(&object).await?;
            }
            attempt.add_feature(&feature).await?;
        }
        Ok(())
    }

    /// Returns whether this job has already removed the object with its resource, or the object has a resource that is
    /// kept.
    async fn is_handled<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        attempt: &Attempt<'_, '_, K>,
        object: &ResourceRef,
    ) -> Result<bool, StepError> {
        if attempt.has_removed(&object.name) {
            return Ok(true);
        }
        let (mut uow, Some(platform)) = cx.read().await? else {
            return Ok(false);
        };
        let known = ObjectRecords::of(&platform, uow.as_mut(), object).await?;
        let since = cx.job.started_at.unwrap_or(cx.job.created_at);
        Ok(known.is_entered || known.deleted_at.is_some_and(|at| at > since))
    }

    /// Returns the platform's remaining objects at the provider that must be removed: one portion, and one more if
    /// there are more.
    async fn left_at_provider<K: JobKind<Input = Removal>>(
        self,
        cx: &StepContext<'_, K>,
        attempt: &Attempt<'_, '_, K>,
    ) -> Result<Vec<ResourceRef>, StepError> {
        let platform = &cx.input.platform_id;
        let (mut left, mut cursor) = (Vec::new(), None);
        loop {
            let page = cx
                .infrastructure
                .list_owned(platform.as_str(), self.0, cursor);
            let page = page.await?;
            for object in page.objects {
                let object = self.resource_ref(object.name);
                if attempt.has_removed(&object.name) || !self.is_covered(cx, &object).await? {
                    continue;
                }
                // The list can be outdated and still contain removed objects.
                let found = cx.infrastructure.observe(&object).await?;
                if found.is_some_and(|found| found.belongs_to(&object.name, platform)) {
                    left.push(object);
                }
                if left.len() > MAX_OBJECTS_PER_ATTEMPT {
                    return Ok(left);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(left);
            }
        }
    }

    /// Returns whether an object at the provider without a resource is removed. If all environments are removed, the
    /// answer is always yes.
    ///
    /// Otherwise its name must be derived for the environment, or its last resource must have been there. An object
    /// with a resource is removed with that resource.
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
        let (mut uow, Some(platform)) = cx.read().await? else {
            return Ok(false);
        };
        let known = ObjectRecords::of(&platform, uow.as_mut(), object).await?;
        let environment = derived.or(known.environment);
        Ok(
            !known.is_entered
                && environment.is_some_and(|environment| cx.input.covers(environment)),
        )
    }
}

/// The scope of a completed deprovisioning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DeprovisionScope {
    /// The environment; `None` means all environments.
    pub(in crate::use_case::registry) environment: Option<Environment>,
    /// Whether the job itself removed everything in every environment.
    pub(in crate::use_case::registry) everything: bool,
}

/// Records the end of a deprovisioning.
///
/// If the platform is being removed permanently and everything was removed, deletes the platform and all of its
/// records. Otherwise ends the features and stacks of the environment.
async fn finish_deprovision(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    covered: DeprovisionScope,
) -> Result<()> {
    // Sites only exist in the environment `prod`.
    if covered.environment.is_none_or(|e| e == Environment::Prod) {
        deployment::cancel_all(cx, scope, uow, "The platform was deprovisioned.").await?;
    }
    let purges = scope.platform().purging && covered.everything;
    if purges {
        remove_records(scope, uow).await?;
        webhook::remove_of_platform(uow, scope.id()).await?;
        unaudited::remove(uow, scope.platform()).await?;
        iam::suspension::set_flag(scope, uow, None, None).await?;
        provisioning::sync_suspension_hold(cx, scope, uow, false, None).await?;
        release_organization(cx, scope, uow).await?;
    } else {
        let ending = EndScope::Environment(covered.environment);
        feature_state::end_all(cx, scope, uow, ending).await?;
        workspace_stack::end_all(cx, scope, uow, covered.environment).await?;
    }
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action: if purges {
            "platform.purged"
        } else {
            "platform.deprovisioned"
        },
        entity_id: scope.id().to_string(),
        details: None,
    };
    audited::record_event(cx, uow, event).await
}

/// Releases the organization of a platform that was removed permanently.
async fn release_organization(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let organization = scope.platform().organization_id.as_ref();
    let others = match organization {
        None => 0,
        Some(organization) => {
            let belonging = PlatformQuery::OfIncludingDeleted(organization.clone());
            unowned_records::<Platform>(uow).count(&belonging).await?
        }
    };
    let system = SystemScope::new();
    organization::release_platform(cx, system, uow, scope.id(), organization, others > 0).await
}
