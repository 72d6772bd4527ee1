//! Dry runs of jobs: what a job would do.
//!
//! For a dry run the job is queued in a unit of work that is rolled back; this module describes that job. Each kind
//! that creates or removes objects at the provider has a branch in `resources_of`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::jobs::{
    Activate, AppCreate, AuthTarget, Deactivate, Deprovision, Onboard, PlannedPart, PlatformObject,
    ProvisionPlatform, Removal, StackActivate, StackDeactivate, Target, UpgradeAuth, find_resource,
    is_current_auth, is_data_of, is_part, of_stack, owned_by,
};
use crate::access::{AuditEvent, Batches, PlatformAccess, SystemScope};
use crate::kernel::{EntityId, Environment, Error, PlatformId, Result, Stored};
use crate::port::{ResourceRef, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{DEFAULT_RESOURCES, Resource, ResourceQuery, ResourceType};
use crate::use_case::provisioning::JobKind;

/// Maximum number of resources of each type that a plan lists.
const MAX_RESOURCES_PER_TYPE: u32 = 100;

/// The plan of a job, returned by a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobPlan {
    /// The kind of the job, for example `platform.deprovision`.
    pub kind: String,
    /// The platform of the job; `null` for an onboarding, whose platform does not exist yet.
    pub platform_id: Option<PlatformId>,
    /// The entity of the job; `null` if the job does not concern one entity.
    pub entity_id: Option<EntityId>,
    /// The environment of the job; `null` if the job does not concern one environment.
    pub environment: Option<Environment>,
    /// The steps of the job in their order.
    pub steps: Vec<PlannedStep>,
    /// The objects that the job would create or remove at the provider, as far as the registry knows them. At most 100
    /// of each type are listed.
    pub resources: Vec<PlannedResource>,
    /// The total number of these objects, including those that are not listed.
    pub total_resources: u64,
}

/// A step of a planned job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedStep {
    /// The name of the step, unique within the job.
    pub name: String,
}

/// The planned change of an object at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedResource {
    /// The type of the object.
    pub resource_type: ResourceType,
    /// The name of the object at the provider; `null` if it depends on an id that is only generated with the job.
    pub cf_name: Option<String>,
    /// The action that the job would perform.
    pub action: PlannedAction,
}

/// The planned action for an object at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlannedAction {
    /// The object would be created.
    Create,
    /// The object exists and would not be changed.
    Exists,
    /// The object exists in an older version, which would be replaced.
    Update,
    /// The object would be removed.
    Remove,
}

impl JobPlan {
    /// Returns the audit event of the dry run.
    #[must_use]
    pub fn audit_event(&self) -> AuditEvent {
        AuditEvent {
            platform_id: self.platform_id.clone(),
            action: "job.planned",
            entity_id: self.kind.clone(),
            details: Some(json!({
                "dryRun": true,
                "kind": self.kind,
                "entityId": self.entity_id,
                "environment": self.environment,
                "steps": self.steps.len(),
                "resources": self.total_resources,
            })),
        }
    }
}

/// Returns the plan of a job. Must be called in the unit of work in which the job was queued.
///
/// # Errors
/// Only those of the store.
pub async fn plan_of_job(uow: &mut dyn UnitOfWork, job: &Job) -> Result<JobPlan> {
    let Resources {
        listed: named,
        total,
    } = resources_of(uow, job).await?;
    let steps = job.steps.iter().map(|step| PlannedStep {
        name: step.name.clone(),
    });
    Ok(JobPlan {
        kind: job.kind.clone(),
        platform_id: job.platform_id.clone(),
        entity_id: job.entity_id.clone(),
        environment: job.environment,
        steps: steps.collect(),
        resources: named,
        total_resources: total,
    })
}

/// The objects at the provider that a job would change.
#[derive(Debug, Default)]
struct Resources {
    /// The listed objects.
    listed: Vec<PlannedResource>,
    /// The number of all objects, including those that are not listed.
    total: u64,
}

impl From<Vec<PlannedResource>> for Resources {
    fn from(named: Vec<PlannedResource>) -> Self {
        Self {
            total: named.len() as u64,
            listed: named,
        }
    }
}

impl Resources {
    /// Adds the resources of the query that `is_removed` selects. Counts all of them and lists at most
    /// [`MAX_RESOURCES_PER_TYPE`] of each type.
    async fn add(
        &mut self,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        removed_resources: ResourceQuery,
        is_removed: impl Fn(&Resource) -> bool + Send,
    ) -> Result<()> {
        let mut removed_resources = Batches::<Resource>::of(removed_resources);
        while let Some(batch) = removed_resources.next(platform.records(uow)).await? {
            for resource in batch.iter().filter(|resource| is_removed(resource)) {
                self.total += 1;
                let named = self.listed.iter();
                let is_same =
                    |named: &&PlannedResource| named.resource_type == resource.resource_type;
                if named.filter(is_same).count() < MAX_RESOURCES_PER_TYPE as usize {
                    self.listed.push(planned_removal(resource));
                }
            }
        }
        Ok(())
    }
}

/// Returns the objects that a job would change.
async fn resources_of(uow: &mut dyn UnitOfWork, job: &Job) -> Result<Resources> {
    if job.kind == Onboard::NAME {
        return Ok(of_new_platform().into());
    }
    let Some(platform_id) = &job.platform_id else {
        return Ok(Resources::default());
    };
    let Some(platform) = SystemScope::new().platform(uow, platform_id).await? else {
        return Ok(Resources::default());
    };
    match job.kind.as_str() {
        ProvisionPlatform::NAME => {
            let target: Target = input_of::<ProvisionPlatform>(job)?;
            let wanted =
                PlatformObject::defaults().map(|object| object.in_environment(target.at()));
            plan_creations(&platform, uow, job, wanted).await
        }
        Activate::NAME => {
            let target = input_of::<Activate>(job)?.target;
            plan_creations(&platform, uow, job, [target.worker()]).await
        }
        Deactivate::NAME => {
            let input = input_of::<Deactivate>(job)?;
            let worker = input.target.worker();
            let mut removed = Resources::from(vec![PlannedResource {
                resource_type: worker.resource_type,
                cf_name: Some(worker.name),
                action: PlannedAction::Remove,
            }]);
            if input.delete_data {
                let (owned, target) = (owned_by(&input.target), &input.target);
                let is_removed = |resource: &Resource| is_data_of(target, resource);
                removed.add(&platform, uow, owned, is_removed).await?;
            }
            Ok(removed)
        }
        StackActivate::NAME => {
            let input = input_of::<StackActivate>(job)?;
            let wanted = input.work.parts.iter().map(PlannedPart::object);
            plan_creations(&platform, uow, job, wanted).await
        }
        AppCreate::NAME => {
            let input = input_of::<AppCreate>(job)?;
            let wanted = input.work.parts.iter().map(PlannedPart::object);
            plan_creations(&platform, uow, job, wanted).await
        }
        StackDeactivate::NAME => {
            let input = input_of::<StackDeactivate>(job)?;
            let (target, delete_data) = (&input.target, input.work.delete_data);
            let is_removed = |resource: &Resource| {
                is_part(target, resource) && (delete_data || !resource.resource_type.is_store())
            };
            let mut removed = Resources::default();
            let of_stack = of_stack(target);
            removed.add(&platform, uow, of_stack, is_removed).await?;
            Ok(removed)
        }
        Deprovision::NAME => {
            let removal: Removal = input_of::<Deprovision>(job)?;
            plan_removals(&platform, uow, removal.environment).await
        }
        UpgradeAuth::NAME => {
            let target: AuthTarget = input_of::<UpgradeAuth>(job)?;
            plan_auth_upgrades(&platform, uow, &target).await
        }
        // Other kinds only change database rows, or their effect depends on the state at the provider.
        _ => Ok(Resources::default()),
    }
}

/// Decodes the input of a job.
fn input_of<K: JobKind>(job: &Job) -> Result<K::Input> {
    let unreadable = |error| {
        Error::Internal(format!(
            "invalid input of a job of kind {}: {error}",
            K::NAME
        ))
    };
    K::Input::deserialize(&job.input).map_err(unreadable)
}

/// Returns the default resources of a platform that does not exist yet.
fn of_new_platform() -> Vec<PlannedResource> {
    let created = |object: PlatformObject| PlannedResource {
        resource_type: object.resource_type(),
        cf_name: None,
        action: PlannedAction::Create,
    };
    PlatformObject::defaults().map(created).collect()
}

/// Plans objects that are created unless they exist. A resource whose `provision_job_id` is this job does not exist
/// yet.
async fn plan_creations(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    wanted: impl IntoIterator<Item = ResourceRef, IntoIter: Send>,
) -> Result<Resources> {
    let mut resources = Vec::new();
    for wanted in wanted {
        let known = find_resource(platform, uow, &wanted).await?;
        resources.push(PlannedResource {
            resource_type: wanted.resource_type,
            cf_name: Some(wanted.name),
            action: known
                .filter(|resource| resource.provision_job_id.as_ref() != Some(&job.id))
                .map_or(PlannedAction::Create, |_| PlannedAction::Exists),
        });
    }
    Ok(resources.into())
}

/// Plans auth workers that are created or upgraded.
async fn plan_auth_upgrades(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    target: &AuthTarget,
) -> Result<Resources> {
    let mut workers = Vec::with_capacity(target.environments.len());
    for worker in target.workers() {
        let resource = find_resource(platform, uow, &worker).await?;
        workers.push(PlannedResource {
            resource_type: worker.resource_type,
            cf_name: Some(worker.name),
            action: match resource {
                None => PlannedAction::Create,
                Some(resource) if is_current_auth(&resource) => PlannedAction::Exists,
                Some(_) => PlannedAction::Update,
            },
        });
    }
    Ok(workers.into())
}

/// Plans the removal of all resources of the platform in an environment, in the order of removal. `None` means all
/// environments.
async fn plan_removals(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    environment: Option<Environment>,
) -> Result<Resources> {
    let until = uow.now().await?;
    let mut resources = Resources::default();
    for (resource_type, _) in DEFAULT_RESOURCES.into_iter().rev() {
        let removed_resources = ResourceQuery::OfTypeUntil {
            resource_type,
            environment,
            until,
        };
        resources.total += platform
            .records::<Resource>(uow)
            .count(&removed_resources)
            .await?;
        let records = platform.records::<Resource>(uow);
        let named = records
            .list(&removed_resources, MAX_RESOURCES_PER_TYPE)
            .await?;
        resources.listed.extend(named.iter().map(planned_removal));
    }
    Ok(resources)
}

/// Plans the removal of the object of a resource.
fn planned_removal(resource: &Stored<Resource>) -> PlannedResource {
    PlannedResource {
        resource_type: resource.resource_type,
        cf_name: Some(resource.cf_name.to_string()),
        action: PlannedAction::Remove,
    }
}
