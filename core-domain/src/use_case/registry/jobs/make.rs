//! The step that makes one resource of a platform: at the provider, then in the registry. The job's input is a [`Target`].

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Target, as_asked_by, read_input};
use crate::kernel::{Context, EntityId, Error, Result};
use crate::port::{CreateResource, Mode, Provisioned, Record, ResourceRef, UnitOfWork};
use crate::provisioning::{Job, JobStep, Observation, StepContext, StepError};
use crate::registry::{
    PURPOSES, Platform, PlatformStatus, ResourceQuery, ResourceStatus, ResourceType, purpose_of,
    resource_name,
};
use crate::use_case::registry::entities::{default_tenant, living_entity};
use crate::use_case::registry::resources::{self, NewResource};

/// The file a platform's worker begins with.
const WORKER: &str = include_str!("worker.js");
const MAIN_MODULE: &str = "worker.js";

/// Makes the resource of one type.
#[derive(Clone, Copy, Debug)]
pub struct MakeResource(pub ResourceType);

fn wanted(target: &Target, resource_type: ResourceType) -> ResourceRef {
    let name = resource_name(
        &target.platform_id,
        &target.slug,
        target.environment,
        resource_type,
    );
    ResourceRef {
        resource_type,
        name,
    }
}

#[async_trait]
impl JobStep for MakeResource {
    async fn observe(&self, cx: &StepContext<'_>) -> Result<Observation, StepError> {
        let target: Target = read_input(cx.job)?;
        still_wanted(cx, &target).await?;
        look(cx, &target, &wanted(&target, self.0)).await
    }

    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError> {
        let target: Target = read_input(cx.job)?;
        create(
            cx,
            &target,
            &wanted(&target, self.0),
            config(&target, self.0),
        )
        .await
    }

    async fn record(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        job: &Job,
        output: &Value,
    ) -> Result<()> {
        let target: Target = read_input(job)?;
        enter_made(&as_asked_by(cx, job), uow, &target, self.0, job, output).await
    }
}

/// Jobs behind a deletion fail fast.
async fn still_wanted(cx: &StepContext<'_>, target: &Target) -> Result<(), StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let platform = uow.platforms().get(target.platform_id.as_str()).await?;
    if platform.is_none_or(|platform| platform.status == PlatformStatus::Deleted) {
        return Err(StepError::Precondition("the platform is gone".to_owned()));
    }
    let Some(entity) = &target.entity_id else {
        return Ok(());
    };
    match living_entity(uow.as_mut(), &target.platform_id, entity).await {
        Err(Error::NotFound(_)) => Err(StepError::Precondition("the entity is gone".to_owned())),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

/// Looks for an object of the platform's.
async fn look(
    cx: &StepContext<'_>,
    target: &Target,
    resource: &ResourceRef,
) -> Result<Observation, StepError> {
    let found = cx.infrastructure.observe(resource).await?;
    Ok(match found {
        None => Observation::Absent,
        Some(found) if found.owner == target.platform_id.as_str() => {
            Observation::Present(output(resource, &found))
        }
        Some(_) => Observation::Conflict(format!(
            "the name {} belongs to something else",
            resource.name
        )),
    })
}

/// Makes an object of the platform's.
async fn create(
    cx: &StepContext<'_>,
    target: &Target,
    resource: &ResourceRef,
    config: Value,
) -> Result<Value, StepError> {
    let request = CreateResource {
        resource: resource.clone(),
        owner: target.platform_id.to_string(),
        effect_key: cx.effect_key.clone(),
        config,
    };
    let made = cx.infrastructure.create(&request).await?;
    Ok(output(resource, &made))
}

fn output(resource: &ResourceRef, made: &Provisioned) -> Value {
    json!({
        "resourceType": resource.resource_type,
        "cfName": resource.name,
        "cfId": made.id,
        "cfUrl": made.url,
    })
}

/// A worker is bound to the four stores made before it; everything else needs no settings.
fn config(target: &Target, resource_type: ResourceType) -> Value {
    if resource_type != ResourceType::Worker {
        return json!({});
    }
    let stores = PURPOSES.iter().take_while(|(t, _)| *t != resource_type);
    let bindings = stores.map(|(store, purpose)| {
        json!({
            "name": purpose.to_uppercase(),
            "type": store,
            "resource": wanted(target, *store).name,
        })
    });
    json!({
        "mainModule": MAIN_MODULE,
        "modules": { MAIN_MODULE: WORKER },
        "bindings": bindings.collect::<Vec<_>>(),
    })
}

/// Enters what a step made into the registry, or brings the entry up to date.
async fn enter_made(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    target: &Target,
    resource_type: ResourceType,
    job: &Job,
    output: &Value,
) -> Result<()> {
    let text = |field: &str| output[field].as_str().map(str::to_owned);
    let cf_name = wanted(target, resource_type).name;
    let exactly = ResourceQuery::Exactly {
        platform_id: target.platform_id.clone(),
        resource_type,
        environment: target.environment,
        cf_name: cf_name.clone(),
    };
    if let Some(seen) = uow.resources().first(&exactly).await? {
        let mut next = seen.clone().into_inner();
        next.status = ResourceStatus::Active;
        next.cf_id = text("cfId");
        next.cf_url = text("cfUrl");
        next.provision_job_id = Some(job.id.clone());
        resources::put(cx, uow, &seen, next, "resource.updated").await?;
        return Ok(());
    }
    let new = NewResource {
        stack_id: None,
        resource_type,
        service_name: purpose_of(resource_type).to_owned(),
        environment: target.environment,
        cf_name,
        cf_id: text("cfId"),
        cf_url: text("cfUrl"),
        provision_job_id: Some(job.id.clone()),
        config: json!({}),
    };
    let entity = owner_of(cx, uow, target).await?;
    let active = ResourceStatus::Active;
    resources::enter(cx, uow, &target.platform_id, &entity, active, new).await?;
    Ok(())
}

async fn owner_of(cx: &Context, uow: &mut dyn UnitOfWork, target: &Target) -> Result<EntityId> {
    if let Some(entity) = &target.entity_id {
        let living = living_entity(uow, &target.platform_id, entity).await?;
        return Ok(living.id.clone());
    }
    let platform = uow.platforms().get(target.platform_id.as_str()).await?;
    let platform = platform.ok_or(Error::NotFound(Platform::KIND))?;
    Ok(default_tenant(cx, uow, &platform).await?.id.clone())
}
