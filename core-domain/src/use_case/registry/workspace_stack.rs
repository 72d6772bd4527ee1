//! Workspace stacks: entering and finding them. Nothing is provisioned for one that is entered here.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::jobs::{
    Activation, AppCreate, MadeResource, NewApp, PlannedPart, StackActivate, StackDeactivate,
    StackInput, StackRemoval, StackTarget, entry_of,
};
use super::{entity, feature, resource};
use crate::access::{
    AuditEvent, Batches, PlatformAccess, PlatformScope, PlatformWriter, audited,
    ensure_room_unless_operator,
};
use crate::kernel::{
    BoundedJson, Code, Context, EntityId, Environment, Error, IllegalMove, JobId, Line, ListQuery,
    Machine, Name, Page, PlatformId, ResourceId, Result, StackId, StoreError, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::{FailureKind, Job, StepStatus};
use crate::registry::{
    ActivatedVersion, CreateResource, CreateWorkspaceStack, FeatureId, NameHolder, ProviderName,
    Resource, ResourceEvent, ResourceQuery, ResourceStatus, WorkspaceStack, WorkspaceStackEvent,
    WorkspaceStackFilter, WorkspaceStackQuery, WorkspaceStackStatus, name_holder,
};
use crate::stacks::{
    AppName, AppType, SemVer, StackDefinition, StackTemplate, StackVersion, TemplateStatus,
    VersionStatus, parts_of_app,
};
use crate::use_case::provisioning::{enqueue, enqueue_child};
use crate::use_case::stacks::{template, version};

/// Creates a stack of an entity. A new default takes the place of the one the entity has.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_STATE` below a suspended one; `CONFLICT` when the entity has a stack of this
/// name; `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::WorkspaceWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateWorkspaceStack,
) -> Result<Stored<WorkspaceStack>> {
    let tenant = entity::not_deleted(scope, uow, &command.tenant_id).await?;
    entity::ensure_not_suspended(scope, uow, &tenant).await?;
    ensure_room_for_stack(cx, scope, uow, &tenant.id).await?;
    if command.is_default {
        unset_default(cx, scope, uow, &tenant.id).await?;
    }
    let now = uow.now().await?;
    let id = StackId::generate(now, cx.entropy.as_ref());
    let stack = WorkspaceStack::create(id, scope.id(), command, now);
    let stored = audited::insert(cx, scope, uow, stack, "workspace_stack.created").await;
    stored.map_err(conflict)
}

/// Refuses one more stack of an entity.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(super) async fn ensure_room_for_stack(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    tenant: &EntityId,
) -> Result<()> {
    let of_tenant = WorkspaceStackQuery::of_tenant(tenant);
    let stacks = scope.records::<WorkspaceStack>(uow);
    let limit = cx.limits.workspace_stacks_per_entity;
    let message = "The entity has as many workspace stacks as it may have.";
    ensure_room_unless_operator(cx, stacks, &of_tenant, limit, message).await
}

async fn unset_default(
    cx: &Context,
    scope: &PlatformScope<grant::WorkspaceWrite>,
    uow: &mut dyn UnitOfWork,
    tenant: &EntityId,
) -> Result<()> {
    let default = WorkspaceStackQuery::DefaultOf(tenant.clone());
    let stacks = scope.records::<WorkspaceStack>(uow);
    let Some(seen) = stacks.first(&default).await? else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.is_default = false;
    let action = "workspace_stack.updated";
    audited::replace(&cx.consequence(), scope, uow, &seen, next, action).await?;
    Ok(())
}

/// What a write that could not be made means: that the name is taken, or that another default was faster, after which the
/// unit runs again and finds it.
fn conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "name", .. }) => Error::refused(
            Code::Conflict,
            "The entity has a workspace stack of this name already.",
        ),
        Error::Store(error) => error.conflict_as_retry().into(),
        error => error,
    }
}

/// The workspace stacks of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    scope: &PlatformScope<grant::WorkspaceRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<WorkspaceStackFilter>,
) -> Result<Page<Stored<WorkspaceStack>>> {
    let listed = WorkspaceStackQuery::Listed(query.filter.clone());
    let stacks = scope.records::<WorkspaceStack>(uow);
    stacks.page(&listed, &query.page()).await
}

/// A workspace stack of the platform.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::WorkspaceRead>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
) -> Result<Stored<WorkspaceStack>> {
    scope.records::<WorkspaceStack>(uow).get(stack).await
}

/// Removes the stacks of an entity that is deleted with all that it has.
pub(super) async fn remove_all_of(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    tenant: &EntityId,
) -> Result<()> {
    let of_tenant = WorkspaceStackQuery::of_tenant(tenant);
    let mut stacks = Batches::<WorkspaceStack>::of(of_tenant);
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for stack in batch {
            audited::remove(cx, scope, uow, &stack, "workspace_stack.deleted").await?;
        }
    }
    Ok(())
}

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
    enter_planned(cx, scope, uow, of, &input.work.parts).await?;
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
    ensure_room_for_stack(cx, scope, uow, &target.entity_id).await?;
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

/// Creates an app in a workspace stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateApp {
    /// The platform.
    pub platform_id: PlatformId,
    /// The workspace stack.
    pub stack_id: StackId,
    /// The app's name.
    pub app_name: AppName,
    /// What it is made of.
    pub app_type: AppType,
    /// Whether it has a database, bound to its service, or to its site when it has no service.
    #[serde(default)]
    pub with_database: bool,
}

/// Queues the job that makes an app, where its stack runs (a stack that was entered by request: in production). Asked for
/// again, it makes what is missing and leaves what is there as it is, deployed code included.
///
/// # Errors
/// `NOT_FOUND` for an unknown stack; `INVALID_STATE` when it is neither active nor on its way, and below a suspended entity;
/// `CONFLICT` when a name at the provider is taken.
pub async fn create_app(
    cx: &Context,
    scope: &PlatformScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
    command: CreateApp,
) -> Result<Stored<Job>> {
    let scope = scope.writer();
    let stacks = scope.records::<WorkspaceStack>(uow);
    let stack = stacks.get(&command.stack_id).await?;
    if !stack.takes_apps() {
        let takes = [WorkspaceStackStatus::Pending, WorkspaceStackStatus::Active];
        return Err(IllegalMove::new(stack.status, takes).into());
    }
    let entity = entity::not_deleted(scope, uow, &stack.tenant_id).await?;
    entity::ensure_not_suspended(scope, uow, &entity).await?;
    let target = StackTarget {
        platform_id: scope.id().clone(),
        slug: scope.platform().slug.clone(),
        entity_id: entity.id.clone(),
        environment: stack.environment.unwrap_or(Environment::Prod),
        stack_instance_id: stack.id.clone(),
    };
    let parts = parts_of_app(&command.app_name, command.app_type, command.with_database);
    let work = NewApp {
        app_name: command.app_name,
        app_type: command.app_type,
        with_database: command.with_database,
        parts: target.planned(&parts),
    };
    let input = StackInput { target, work };
    let job = enqueue::<AppCreate>(cx, scope, uow, &input).await?;
    let of = (&input.target, &job.id);
    enter_planned(cx, scope, uow, of, &input.work.parts).await?;
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action: "app.creation_queued",
        entity_id: stack.id.to_string(),
        details: Some(json!({ "jobId": job.id, "appName": input.work.app_name })),
    };
    audited::event(cx, uow, event).await?;
    Ok(job)
}

/// Takes a workspace stack down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeactivateStack {
    /// The platform.
    pub platform_id: PlatformId,
    /// The workspace stack.
    pub stack_instance_id: StackId,
    /// Where it runs.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
    /// Remove its databases, buckets, key-value namespaces and queues as well, with all they hold.
    #[serde(default)]
    pub delete_data: bool,
}

/// Queues the job that removes the workers, pages and features of a workspace stack, those of its apps included. Its data
/// stays, `active` in the catalogue, and serves the stack again when it is activated again; it can be removed later by
/// another request. A feature that another stack of the entity asks for as well stays.
///
/// # Errors
/// `NOT_FOUND` for an unknown stack; `CONFLICT` when it runs in another environment.
pub async fn deactivate(
    cx: &Context,
    scope: &PlatformScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
    command: DeactivateStack,
) -> Result<Stored<Job>> {
    let scope = scope.writer();
    let stacks = scope.records::<WorkspaceStack>(uow);
    let seen = stacks.get(&command.stack_instance_id).await?;
    if let Some(environment) = seen.environment
        && environment != command.environment
    {
        return Err(Error::Refused {
            code: Code::Conflict,
            message: format!("The stack runs in {environment}."),
            details: json!({ "environment": environment }),
        });
    }
    let event = WorkspaceStackEvent::Deactivate;
    let mut next = seen.edit().after(event)?;
    let input = StackInput {
        target: StackTarget {
            platform_id: scope.id().clone(),
            slug: scope.platform().slug.clone(),
            entity_id: seen.tenant_id.clone(),
            environment: command.environment,
            stack_instance_id: seen.id.clone(),
        },
        work: StackRemoval {
            delete_data: command.delete_data,
        },
    };
    let job = enqueue::<StackDeactivate>(cx, scope, uow, &input).await?;
    next.provision_job_id = Some(job.id.clone());
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(job)
}

/// The entry of a part, if there is one.
pub(in crate::use_case::registry) async fn of_part(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    part: &PlannedPart,
) -> Result<Option<Stored<Resource>>> {
    entry_of(platform, uow, &part.object()).await
}

/// The entries of a stack that are not deleted, newest first.
pub(in crate::use_case::registry) fn of_stack(target: &StackTarget) -> ResourceQuery {
    ResourceQuery::OfStack(target.stack_instance_id.clone())
}

/// Whether one of these entries is a part of the stack in its environment. What the platform has for itself is not, even if
/// an entry made by hand says so.
pub(in crate::use_case::registry) fn is_part(target: &StackTarget, entry: &Resource) -> bool {
    let holder = name_holder(entry.cf_name.as_str(), &target.platform_id);
    entry.environment == target.environment && holder != Some(NameHolder::Platform)
}

/// Enters the parts a job shall make. What is there already stays as it is, and what another job is about to make stays
/// that job's.
///
/// # Errors
/// `CONFLICT` when a name is taken.
pub(in crate::use_case::registry) async fn enter_planned(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, job): (&StackTarget, &JobId),
    parts: &[PlannedPart],
) -> Result<()> {
    for part in parts {
        let Some(seen) = of_part(platform, uow, part).await? else {
            let entry = entry(cx, platform, uow, (target, job), part).await?;
            resource::insert_for_job(cx, platform, uow, entry).await?;
            continue;
        };
        if seen.status == ResourceStatus::Failed {
            let event = ResourceEvent::Provision;
            let mut next = seen.edit().after(event, uow.now().await?)?;
            next.provision_job_id = Some(job.clone());
            audited::replace(cx, platform, uow, &seen, next, event.of_event().action).await?;
        }
    }
    Ok(())
}

/// Enters what a job made or found.
pub(in crate::use_case::registry) async fn upsert_part(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, job): (&StackTarget, &JobId),
    part: &PlannedPart,
    made: &MadeResource,
) -> Result<()> {
    let mut observed = entry(cx, platform, uow, (target, job), part).await?;
    observed.cf_id = Line::parse(&made.cf_id).ok();
    observed.cf_url.clone_from(&made.cf_url);
    let maker = made.maker(job);
    resource::upsert_observed(cx, platform, uow, observed, maker).await?;
    Ok(())
}

/// Says of what a job that has ended did not make that it failed. What a cancelled job had not begun with was never wanted.
pub(in crate::use_case::registry) async fn settle_unmade(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    parts: &[PlannedPart],
) -> Result<()> {
    let cancelled = job.failure_kind == Some(FailureKind::Cancelled);
    for part in parts {
        let entry = of_part(platform, uow, part).await?;
        let own = |entry: &Resource| {
            entry.provision_job_id.as_ref() == Some(&job.id)
                && entry.status != ResourceStatus::Active
        };
        let Some(entry) = entry.filter(|entry| own(entry)) else {
            continue;
        };
        let mut steps = job.steps.iter();
        let step = steps.find(|step| step.name == part.step());
        if cancelled && step.is_some_and(|step| step.status == StepStatus::Pending) {
            resource::soft_delete(cx, platform, uow, &entry).await?;
            continue;
        }
        let next = entry.edit().not_made(uow.now().await?)?;
        let action = ResourceEvent::Fail.of_event().action;
        audited::replace(cx, platform, uow, &entry, next, action).await?;
    }
    Ok(())
}

/// The entry of a part that is not there yet.
async fn entry(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, job): (&StackTarget, &JobId),
    part: &PlannedPart,
) -> Result<Resource> {
    let command = CreateResource {
        stack_id: Some(target.stack_instance_id.clone()),
        resource_type: part.id.resource_type,
        service_name: provider_name(part.id.name.as_str())?,
        environment: target.environment,
        cf_name: provider_name(&part.cf_name)?,
        cf_id: None,
        cf_url: None,
        provision_job_id: Some(job.clone()),
        config: BoundedJson::empty_object(),
    };
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let entity = target.entity_id.clone();
    Ok(Resource::create(
        id,
        platform.platform(),
        entity,
        command,
        now,
    ))
}

fn provider_name(text: &str) -> Result<ProviderName> {
    ProviderName::parse(text).map_err(|error| Error::Internal(error.to_string()))
}

/// Moves a stack as its job moved, provided it is still this job's: one that was asked for, or ended, otherwise in the
/// meantime stays as it is.
pub(in crate::use_case::registry) async fn record_event(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (stack, job): (&StackId, &JobId),
    event: WorkspaceStackEvent,
) -> Result<()> {
    let stacks = scope.records::<WorkspaceStack>(uow);
    let seen = stacks.find(stack).await?;
    let own = |seen: &WorkspaceStack| seen.provision_job_id.as_ref() == Some(job);
    let Some(seen) = seen.filter(|seen| own(seen)) else {
        return Ok(());
    };
    let next = seen.edit().after(event)?;
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(())
}

/// Ends the stacks that run in an environment, or in any, with it. Jobs that still work on them find that out.
pub(in crate::use_case::registry) async fn end_all(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    environment: Option<Environment>,
) -> Result<()> {
    let event = WorkspaceStackEvent::End;
    let all = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
    let mut stacks = Batches::<WorkspaceStack>::of(all);
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for seen in batch {
            let there = seen
                .environment
                .is_some_and(|of| environment.is_none_or(|e| e == of));
            if !there || !event.of_event().from.contains(&seen.status) {
                continue;
            }
            let next = seen.edit().after(event)?;
            audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
        }
    }
    Ok(())
}

/// Another stack of the entity that runs, or is about to, in the environment, and asks for the feature as well.
pub(in crate::use_case::registry) async fn other_with_feature(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    (entity, stack): (&EntityId, &StackId),
    environment: Environment,
    feature: &FeatureId,
) -> Result<Option<StackId>> {
    let mut stacks = Batches::<WorkspaceStack>::of(WorkspaceStackQuery::of_tenant(entity));
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for other in batch {
            let Some(version) = other.version_id.as_ref() else {
                continue;
            };
            if other.id == *stack || other.environment != Some(environment) || !other.takes_apps() {
                continue;
            }
            let version = version::by_id(uow, version).await?;
            let definition = StackDefinition::parse(&version.stack_definition);
            let features = definition.unwrap_or_default().features;
            if features.iter().any(|of| of.id.as_str() == feature.as_str()) {
                return Ok(Some(other.id.clone()));
            }
        }
    }
    Ok(None)
}
