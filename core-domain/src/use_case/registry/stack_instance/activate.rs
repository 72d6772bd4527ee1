//! Activating stacks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::entries;
use crate::access::{PlatformScope, PlatformWriter, audited};
use crate::kernel::{
    Code, Context, EntityId, Environment, Error, JobId, Line, Machine, Name, PlatformId, Result,
    StackId, StoreError, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{
    ActivatedVersion, FeatureId, WorkspaceStack, WorkspaceStackEvent, WorkspaceStackQuery,
    WorkspaceStackStatus,
};
use crate::stacks::{
    SemVer, StackDefinition, StackTemplate, StackVersion, TemplateStatus, VersionStatus,
};
use crate::use_case::provisioning::enqueue_child;
use crate::use_case::registry::jobs::{Activation, StackActivate, StackInput, StackTarget};
use crate::use_case::registry::{entity, feature, workspace_stack};
use crate::use_case::stacks::{template, version};

/// Activates a version of a stack template for an entity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivateStack {
    /// The platform.
    pub platform_id: PlatformId,
    /// The template, by name or id.
    pub stack_id: Line<1, 128>,
    /// The version of it.
    pub stack_version: SemVer,
    /// The entity it is for; the platform's own tenant when not said.
    pub entity_id: Option<EntityId>,
    /// Where it shall run.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
}

/// Queues the job that makes what a version of a template asks for. Each activation makes a workspace stack of its own,
/// called after the template; but one that the entity has had from the template in the environment and that was taken down,
/// or could not be activated, is brought back, with the data that it kept. Deprecated versions are activated as well; the
/// job says that they are.
///
/// # Errors
/// `NOT_FOUND` for an unknown template, version or entity; `INVALID_STATE` below a suspended entity; `CONFLICT` when the
/// version was published before its definition was checked and cannot be planned, when one of its features is there in
/// another version, or when a name at the provider is taken.
pub async fn activate(
    cx: &Context,
    scope: &PlatformScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
    command: ActivateStack,
) -> Result<Stored<Job>> {
    activate_for(cx, scope.writer(), uow, command, None).await
}

/// As [`activate`], for a job that waits for that of the stack, if it is for one.
pub(in crate::use_case::registry) async fn activate_for(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    command: ActivateStack,
    parent: Option<&JobId>,
) -> Result<Stored<Job>> {
    let template = template::resolve(uow, command.stack_id.as_str()).await?;
    let version = version::of_precedence(uow, &template.id, &command.stack_version).await?;
    let definition = StackDefinition::parse(&version.stack_definition);
    let definition = definition.map_err(|issues| Error::Refused {
        code: Code::Conflict,
        message: "The definition of this version cannot be planned.".to_owned(),
        details: json!({ "issues": issues }),
    })?;
    let entity = match &command.entity_id {
        Some(id) => entity::not_deleted(scope, uow, id).await?,
        None => entity::default_tenant(cx, scope, uow).await?,
    };
    entity::ensure_not_suspended(scope, uow, &entity).await?;
    let environment = command.environment;
    for asked in &definition.features {
        let id = FeatureId::from(asked.id.clone());
        let known = feature::find(scope, uow, &entity.id, &id, environment).await?;
        if let Some(known) = known {
            feature::is_there(&known, &asked.version)?;
        }
    }
    let activated = ActivatedVersion {
        template_id: template.id.clone(),
        version_id: version.id.clone(),
        environment,
    };
    let previous = previous(scope, uow, &entity.id, &activated).await?;
    let stack_instance_id = match &previous {
        Some(seen) => seen.id.clone(),
        None => StackId::generate(uow.now().await?, cx.entropy.as_ref()),
    };
    let target = StackTarget {
        platform_id: scope.id().clone(),
        slug: scope.platform().slug.clone(),
        entity_id: entity.id.clone(),
        environment,
        stack_instance_id,
    };
    let input = input(target, (&template, &version), definition);
    let job = enqueue_child::<StackActivate>(cx, scope, uow, &input, parent).await?;
    match previous {
        Some(seen) => bring_back(cx, scope, uow, &seen, &activated, &job).await?,
        None => insert(cx, scope, uow, (&input.target, &template), &activated, &job).await?,
    }
    let of = (&input.target, &job.id);
    entries::enter_planned(cx, scope, uow, of, &input.work.parts).await?;
    Ok(job)
}

/// The job's input.
fn input(
    target: StackTarget,
    (template, version): (&StackTemplate, &StackVersion),
    definition: StackDefinition,
) -> StackInput<Activation> {
    let mut parts = definition.parts(target.environment);
    let before_features = parts.len();
    parts.extend(definition.parts_of_apps());
    let work = Activation {
        template: template.name.clone(),
        version: version.version.clone(),
        version_id: version.id.clone(),
        deprecated: template.status == TemplateStatus::Deprecated
            || version.status == VersionStatus::Deprecated,
        parts: target.planned(&parts),
        features: definition.features,
        before_features,
    };
    StackInput { target, work }
}

/// The newest stack that an activation brings back.
async fn previous(
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    activated: &ActivatedVersion,
) -> Result<Option<Stored<WorkspaceStack>>> {
    let of_template = WorkspaceStackQuery::OfTemplate {
        tenant_id: entity.clone(),
        template_id: activated.template_id.clone(),
        environment: activated.environment,
        status: [WorkspaceStackStatus::Inactive, WorkspaceStackStatus::Failed],
    };
    let stacks = scope.records::<WorkspaceStack>(uow);
    stacks.first(&of_template).await
}

async fn bring_back(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<WorkspaceStack>,
    activated: &ActivatedVersion,
    job: &Job,
) -> Result<()> {
    let event = WorkspaceStackEvent::Activate;
    let mut next = seen.edit().after(event)?;
    next.version_id = Some(activated.version_id.clone());
    next.provision_job_id = Some(job.id.clone());
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await?;
    Ok(())
}

/// Enters the stack, called after its template; with a part of its id when the entity has a stack of that name.
async fn insert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, template): (&StackTarget, &StackTemplate),
    activated: &ActivatedVersion,
    job: &Job,
) -> Result<()> {
    workspace_stack::ensure_room_for_stack(cx, scope, uow, &target.entity_id).await?;
    let id = &target.stack_instance_id;
    // The last digits are random, the first ones are the time.
    let from = id.as_str().len().saturating_sub(12);
    let distinct = format!("{} {}", template.name, &id.as_str()[from..]);
    let now = uow.now().await?;
    let action = WorkspaceStackEvent::Activate.of_event().action;
    for name in [template.name.as_str(), &distinct] {
        let name = Name::parse(name).map_err(|error| Error::Internal(error.to_string()))?;
        let named = (target.entity_id.clone(), name);
        let mut stack = WorkspaceStack::activated(id.clone(), scope.id(), named, activated, now);
        stack.provision_job_id = Some(job.id.clone());
        match audited::insert(cx, scope, uow, stack, action).await {
            Err(Error::Store(StoreError::Conflict { index: "name", .. })) => {}
            outcome => return outcome.map(drop),
        }
    }
    Err(StoreError::retry("no name was free").into())
}
