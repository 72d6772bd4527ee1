//! `platform.reconcile`: compares the registry records of a platform with the objects at the provider.
//!
//! It has one step for each resource type, one for DNS records, one for custom domains and one for secrets. On request it repairs the
//! differences. Objects that store data are only removed if that was requested explicitly. Objects that never had a
//! resource and are no default resources are only reported.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use super::object::{CreatedObject, ObjectProperties, ObjectRecords, upsert_resource};
use super::platform_object::{PlatformEnvironment, PlatformObject};
use super::reconcile_hostnames::{CompareHostnames, CustomDomains, DnsRecords};
use super::reconcile_report::{Reconciliation, Repair, RepairAction, Report, record_report};
use super::reconcile_secrets::CompareSecrets;
use super::target::ensure_not_deleted;
use crate::access::{Batches, PlatformWriter};
use crate::kernel::{Environment, ResourceId, Result, Stored};
use crate::port;
use crate::port::{ProviderError, ProviderObject, ResourceRef, UnitOfWork};
use crate::registry::{DEFAULT_RESOURCES, Resource, ResourceQuery, ResourceStatus, ResourceType};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::resource::Creator;
use crate::use_case::registry::{entity_tree, resource};

/// The job kind `platform.reconcile`.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct Reconcile {
    /// The base URL of IAM for auth workers.
    pub(in crate::use_case::registry) iam_url: String,
}

impl ComparesResources for Reconcile {
    fn iam_url(&self) -> &str {
        &self.iam_url
    }
}

impl JobKind for Reconcile {
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = "platform.reconcile";
    const VERSION: i64 = 3;
    type Input = Reconciliation;

    fn steps() -> Steps<Self> {
        let in_order = DEFAULT_RESOURCES.map(|(of_type, _)| CompareResources(of_type));
        let resources = Steps::new().steps(in_order);
        resources
            .step(CompareHostnames(DnsRecords))
            .step(CompareHostnames(CustomDomains))
            .step(CompareSecrets)
    }
}

/// A kind that compares a platform's resources.
pub(super) trait ComparesResources: JobKind<Input = Reconciliation> {
    /// Returns the base URL of IAM for auth workers.
    fn iam_url(&self) -> &str;
}

/// Compares the resources of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompareResources(pub(super) ResourceType);

/// The differences that were found, with the data for their repair.
#[derive(Debug, Default)]
struct Differences {
    report: Report,
    missing: Vec<Stored<Resource>>,
    changed: Vec<(Stored<Resource>, ProviderObject)>,
    orphans: Vec<(String, ProviderObject)>,
}

#[async_trait]
impl<K: ComparesResources> JobStep<K> for CompareResources {
    type Output = Report;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<Report>, StepError> {
        let (mut uow, platform) = cx.read().await?;
        ensure_not_deleted(uow.as_mut(), platform.as_deref(), None).await?;
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Report, StepError> {
        let mut found = self.compare(cx).await?;
        if !cx.input.repair {
            return Ok(found.report);
        }
        match self.repair(cx, &mut found).await {
            Ok(()) if !found.report.is_full() => Ok(found.report),
            // Completed repairs are recorded. The next attempt meets the error again.
            Err(error) if found.report.repaired.is_empty() => Err(error),
            _ => Err(StepError::unfinished(&found.report)?),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Report,
    ) -> Result<()> {
        for repair in &output.repaired {
            self.record_repair(cx, &cx.scope, uow, repair).await?;
        }
        record_report(cx, &cx.scope, uow, output).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Report,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

impl CompareResources {
    /// Compares all resources of this type with the objects at the provider.
    async fn compare<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Differences, StepError> {
        let mut objects = self.objects(cx).await?;
        let mut found = Differences::default();
        for resource in self.list_resources(cx).await? {
            // An object with a resource in another environment is not an orphan.
            let mut object = objects.remove(resource.cf_name.as_str());
            if !cx.input.covers(resource.environment) {
                continue;
            }
            found.report.checked += 1;
            if object.is_none() {
                object = self.observe_again(cx, &resource).await?;
            }
            match object {
                Some(object) if differs(&resource, &object) => {
                    found.report.add_changed(resource.cf_name.as_str());
                    found.changed.push((resource, object));
                }
                None if resource.status == ResourceStatus::Active => {
                    found.report.add_missing(resource.cf_name.as_str());
                    found.missing.push(resource);
                }
                _ => {}
            }
        }
        for (name, object) in objects {
            let own = self.default_object(cx, &name).map(|own| own.environment);
            if own.map_or_else(|| cx.input.may_cover(&name), |place| cx.input.covers(place)) {
                found.report.add_orphan(&name);
                found.orphans.push((name, object));
            }
        }
        Ok(found)
    }

    /// Returns the platform's objects of this type at the provider, by name.
    async fn objects<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<BTreeMap<String, ProviderObject>, StepError> {
        let owner = cx.input.platform_id.as_str();
        let (mut objects, mut cursor) = (BTreeMap::new(), None);
        loop {
            let page = cx.infrastructure.list_owned(owner, self.0, cursor).await?;
            let named = page.objects.into_iter();
            objects.extend(named.map(|object| (object.name, object.provisioned)));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(objects);
            }
        }
    }

    /// Returns the resources of this type in all environments.
    async fn list_resources<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Vec<Stored<Resource>>, StepError> {
        let (mut uow, platform) = cx.read().await?;
        let of_type = ResourceQuery::OfTypeUntil {
            resource_type: self.0,
            environment: None,
            until: uow.now().await?,
        };
        let mut resources = Vec::new();
        let Some(platform) = platform else {
            return Ok(resources);
        };
        let mut batches = Batches::<Resource>::of(of_type);
        while let Some(batch) = batches.next(platform.records(uow.as_mut())).await? {
            resources.extend(batch);
        }
        Ok(resources)
    }

    /// Observes the object of an active resource by its name, because the provider's list can be outdated.
    async fn observe_again<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        resource: &Resource,
    ) -> Result<Option<ProviderObject>, StepError> {
        if resource.status != ResourceStatus::Active {
            return Ok(None);
        }
        let object = cx
            .infrastructure
            .observe(&self.resource_ref(resource.cf_name.as_str()))
            .await?;
        let is_own = |found: &ProviderObject| {
            found.belongs_to(resource.cf_name.as_str(), &resource.platform_id)
        };
        Ok(object.filter(is_own))
    }

    /// Returns the reference to an object of this type.
    fn resource_ref(self, name: &str) -> ResourceRef {
        ResourceRef {
            resource_type: self.0,
            name: name.to_owned(),
        }
    }

    /// Repairs the differences until the report is full. After an error, the report contains the repairs that
    /// succeeded.
    async fn repair<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        found: &mut Differences,
    ) -> Result<(), StepError> {
        let report = &mut found.report;
        for (resource, object) in &found.changed {
            if report.is_full() {
                return Ok(());
            }
            let updated = Repair::new(resource.cf_name.as_str(), RepairAction::Updated);
            report.add_repair(with_record(updated, resource).with_object(object.clone()));
        }
        for resource in &found.missing {
            if report.is_full() {
                return Ok(());
            }
            report.add_repair(self.replace(cx, resource).await?);
        }
        for (name, object) in &found.orphans {
            if report.is_full() {
                return Ok(());
            }
            if let Some(repair) = self.repair_orphan(cx, name, object).await? {
                report.add_repair(repair);
            }
        }
        Ok(())
    }

    /// Creates a missing default resource again. Other missing objects are recorded as lost.
    async fn replace<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        resource: &Resource,
    ) -> Result<Repair, StepError> {
        let lost = with_record(
            Repair::new(resource.cf_name.as_str(), RepairAction::Failed),
            resource,
        );
        let Some(own) = self.default_object(cx, resource.cf_name.as_str()) else {
            return Ok(lost);
        };
        cx.guard().await?;
        match cx.infrastructure.create(&own.request).await {
            Err(ProviderError::NameTaken(_)) => Ok(lost),
            created => {
                let created_again = Repair::new(resource.cf_name.as_str(), RepairAction::Created);
                Ok(with_record(created_again, resource).with_object(created?))
            }
        }
    }

    /// Handles an object without a resource. If its resource was deleted, removes the object. Otherwise creates a
    /// resource if it is a default resource. Other objects are kept.
    async fn repair_orphan<K: ComparesResources>(
        &self,
        cx: &StepContext<'_, K>,
        name: &str,
        object: &ProviderObject,
    ) -> Result<Option<Repair>, StepError> {
        let (mut uow, platform) = cx.read().await?;
        let platform = ensure_not_deleted(uow.as_mut(), platform.as_deref(), None).await?;
        // The resource may have been created since the comparison.
        let known = ObjectRecords::of(platform, uow.as_mut(), &self.resource_ref(name)).await?;
        drop(uow);
        if known.is_entered {
            return Ok(None);
        }
        if let Some(place) = known.environment {
            if !cx.input.covers(place) {
                return Ok(None);
            }
            let holds_data = !matches!(self.0, ResourceType::Worker | ResourceType::Pages);
            if holds_data && !cx.input.delete_data {
                return Ok(None);
            }
            cx.guard().await?;
            let owner = cx.input.platform_id.as_str();
            cx.infrastructure
                .remove(&self.resource_ref(name), owner)
                .await?;
            return Ok(Some(Repair::new(name, RepairAction::Removed)));
        }
        let own = self.default_object(cx, name);
        let own = own.filter(|own| cx.input.covers(own.environment));
        Ok(own.map(|own| Repair {
            environment: Some(own.environment),
            service_name: Some(own.service_name.to_owned()),
            ..Repair::new(name, RepairAction::Entered).with_object(object.clone())
        }))
    }

    /// Returns how jobs create the object with this name; `None` if they do not create it for every platform.
    fn default_object<K: ComparesResources>(
        self,
        cx: &StepContext<'_, K>,
        name: &str,
    ) -> Option<DefaultObject> {
        let environments = Environment::ALL.iter().copied();
        let mut all = environments.flat_map(|environment| {
            PlatformObject::of_type(self.0).map(move |object| (object, environment))
        });
        all.find_map(|(object, environment)| {
            let at = PlatformEnvironment {
                platform_id: &cx.input.platform_id,
                slug: &cx.input.slug,
                environment,
            };
            (object.in_environment(at).name == name).then(|| DefaultObject {
                // Each object has its own request, so it needs its own key.
                request: object.request(at, cx.kind.iam_url(), format!("{}-{name}", cx.effect_key)),
                environment,
                service_name: object.purpose(),
            })
        })
    }

    /// Applies a repair to the registry.
    async fn record_repair<K: ComparesResources>(
        &self,
        cx: &JobContext<'_, K>,
        platform: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        repair: &Repair,
    ) -> Result<()> {
        match (repair.action, &repair.cf_id) {
            (RepairAction::Failed, _) => {
                let id = repair.id.as_deref().and_then(ResourceId::parse);
                match id {
                    Some(id) => resource::record_loss(cx, platform, uow, &id).await,
                    None => Ok(()),
                }
            }
            (
                RepairAction::Created | RepairAction::Updated | RepairAction::Entered,
                Some(cf_id),
            ) => {
                let owner = entity_tree::default_tenant(cx, platform, uow).await?;
                let properties = ObjectProperties {
                    entity_id: owner.id.clone(),
                    stack_id: None,
                    feature_id: None,
                    service_name: repair.service_name.clone().unwrap_or_default(),
                    environment: repair.environment.unwrap_or(Environment::Prod),
                };
                let found = CreatedObject {
                    resource_type: self.0,
                    cf_name: repair.name.clone(),
                    cf_id: cf_id.clone(),
                    cf_url: repair.cf_url.clone(),
                    adopted: false,
                };
                let creator = match repair.action {
                    RepairAction::Created => Creator::Job(&cx.job.id),
                    _ => Creator::Unchanged,
                };
                upsert_resource(cx, platform, uow, properties, &found, creator).await?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A default resource with the request that creates it.
struct DefaultObject {
    request: port::ObjectRequest,
    environment: Environment,
    service_name: &'static str,
}

/// Adds the data of the record.
fn with_record(repair: Repair, resource: &Resource) -> Repair {
    Repair {
        id: Some(resource.id.to_string()),
        environment: Some(resource.environment),
        service_name: Some(resource.service_name.to_string()),
        ..repair
    }
}

/// Returns whether a record differs from its object. Provider lists may omit URLs, so a missing URL is no difference.
fn differs(resource: &Resource, object: &ProviderObject) -> bool {
    let is_known = resource.cf_id.as_ref().map(|id| id.as_str()) == Some(&object.id);
    let moved = object.url.is_some() && object.url != resource.cf_url;
    resource.status != ResourceStatus::Active || !is_known || moved
}
