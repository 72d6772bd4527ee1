//! Workspace stacks: creates and lists them, activates template versions, creates apps, and deactivates stacks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::jobs::{
    Activation, AppCreate, NewApp, StackActivate, StackDeactivate, StackInput, StackRemoval,
    StackTarget, insert_planned_parts,
};
use super::limited_object;
use super::{entity_tree, feature_state};
use crate::access::{
    AuditEvent, Batches, PlatformAccess, PlatformScope, PlatformWriter, SystemScope, audited,
    ensure_room_unless_operator,
};
use crate::billing::usage::LimitedObject;
use crate::kernel::{
    Code, Context, EntityId, Environment, Error, IllegalTransition, JobId, Line, ListQuery,
    Machine, Name, Page, PlatformId, Result, StackId, StoreError, Stored, permission,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{
    ActivatedVersion, CreateWorkspaceStack, FeatureId, WorkspaceStack, WorkspaceStackEvent,
    WorkspaceStackFilter, WorkspaceStackQuery, WorkspaceStackStatus,
};
use crate::stacks::{
    AppName, AppType, SemVer, StackDefinition, StackTemplate, StackVersion, TemplateStatus,
    VersionStatus, parts_of_app,
};
use crate::use_case::provisioning::{enqueue, enqueue_child};
use crate::use_case::stacks::{template, version};

/// Creates the record of a workspace stack of an entity. Nothing is provisioned. If the stack is the new default, the
/// entity's previous default loses that role.
///
/// # Errors
/// - `NOT_FOUND` if the entity does not exist.
/// - `INVALID_STATE` if the entity or one above it is suspended.
/// - `CONFLICT` if the entity has a stack with this name.
/// - `LIMIT_REACHED` if the entity has its maximum number of workspace stacks.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<permission::WorkspaceWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateWorkspaceStack,
) -> Result<Stored<WorkspaceStack>> {
    let tenant = entity_tree::not_deleted(scope, uow, &command.tenant_id).await?;
    entity_tree::ensure_not_suspended(scope, uow, &tenant).await?;
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

/// Checks that the entity can have another stack.
///
/// # Errors
/// - `LIMIT_REACHED` if the entity has its maximum number of workspace stacks.
/// - `QUOTA_EXCEEDED` if the plan of the platform allows no more stacks.
///
/// Operators have no limit.
pub(super) async fn ensure_room_for_stack(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    tenant: &EntityId,
) -> Result<()> {
    let of_tenant = WorkspaceStackQuery::of_tenant(tenant);
    let stacks = scope.records::<WorkspaceStack>(uow);
    let limit = cx.limits.workspace_stacks_per_entity;
    let message = "The entity has reached its maximum number of workspace stacks.";
    ensure_room_unless_operator(cx, stacks, &of_tenant, limit, message).await?;
    limited_object::ensure_room(cx, scope, uow, LimitedObject::Stacks).await
}

/// Clears the flag `isDefault` of the entity's default stack.
async fn unset_default(
    cx: &Context,
    scope: &PlatformScope<permission::WorkspaceWrite>,
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
    audited::replace(&cx.without_conditions(), scope, uow, &seen, next, action).await?;
    Ok(())
}

/// Converts a conflict on the unique index `name` to `CONFLICT`. Other conflicts come from a concurrent new default and
/// become a retry, which sees it.
fn conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "name", .. }) => Error::refused(
            Code::Conflict,
            "The entity already has a workspace stack with this name.",
        ),
        Error::Store(error) => error.conflict_as_retry().into(),
        error => error,
    }
}

/// Lists the workspace stacks of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    scope: &PlatformScope<permission::WorkspaceRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<WorkspaceStackFilter>,
) -> Result<Page<Stored<WorkspaceStack>>> {
    let listed = WorkspaceStackQuery::Listed(query.filter.clone());
    let stacks = scope.records::<WorkspaceStack>(uow);
    stacks.page(&listed, &query.uncounted_page()).await
}

/// Returns a workspace stack of the platform.
///
/// # Errors
/// `NOT_FOUND` if the platform has no such stack.
pub async fn get(
    scope: &PlatformScope<permission::WorkspaceRead>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
) -> Result<Stored<WorkspaceStack>> {
    scope.records::<WorkspaceStack>(uow).get(stack).await
}

/// Returns the names of those workspace stacks of a platform that exist, by id.
///
/// # Errors
/// Only those of the store.
pub async fn names(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    ids: &[&str],
) -> Result<BTreeMap<StackId, Name>> {
    let Some(platform) = SystemScope::new().platform(uow, platform).await? else {
        return Ok(BTreeMap::new());
    };
    let stacks = platform
        .records::<WorkspaceStack>(uow)
        .get_many(ids)
        .await?;
    let name = |stack: Stored<WorkspaceStack>| (stack.id.clone(), stack.name.clone());
    Ok(stacks.into_iter().map(name).collect())
}

/// Removes the stacks of an entity that is deleted in a cascade.
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
    /// The platform on which the stack is activated.
    pub platform_id: PlatformId,
    /// The stack template, by name or id.
    pub stack_id: Line<1, 128>,
    /// The version of the template, for example `1.2.0`.
    pub stack_version: SemVer,
    /// The entity that gets the stack; `null` means the platform's default tenant. Default: `null`.
    pub entity_id: Option<EntityId>,
    /// The environment in which the stack runs. Default: `prod`.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
}

/// Activates a version of a stack template: queues the job that creates its objects and features.
///
/// Each activation creates a new workspace stack, named after the template. If the entity has an inactive or failed
/// stack of the template in the environment, that stack is activated again instead, with its data. Deprecated versions
/// can be activated; the job's input says that they are deprecated.
///
/// # Errors
/// - `NOT_FOUND` if the template, the version or the entity does not exist.
/// - `INVALID_STATE` if the entity or one above it is suspended.
/// - `CONFLICT` if the definition of the version is invalid, because it was published before definitions were checked.
/// - `CONFLICT` if another version of one of its features is active, or if a name at the provider is taken.
/// - `LIMIT_REACHED` if the entity has its maximum number of stacks, or if too many jobs are queued.
/// - `QUOTA_EXCEEDED` if the plan of the platform allows no more stacks.
pub async fn activate(
    cx: &Context,
    scope: &PlatformScope<permission::JobCreate>,
    uow: &mut dyn UnitOfWork,
    command: ActivateStack,
) -> Result<Stored<Job>> {
    activate_for(cx, scope.writer(), uow, command, None).await
}

/// Activates a stack like [`activate`]. `parent` is the job that waits for the activation.
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
        message: "The definition of this version is invalid. See `details.issues`.".to_owned(),
        details: json!({ "issues": issues }),
    })?;
    let entity = match &command.entity_id {
        Some(id) => entity_tree::not_deleted(scope, uow, id).await?,
        None => entity_tree::default_tenant(cx, scope, uow).await?,
    };
    entity_tree::ensure_not_suspended(scope, uow, &entity).await?;
    let environment = command.environment;
    for asked in &definition.features {
        let id = FeatureId::from(asked.id.clone());
        let known = feature_state::find(scope, uow, &entity.id, &id, environment).await?;
        if let Some(known) = known {
            feature_state::is_active_or_pending(&known, &asked.version, None)?;
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
    let input = input(target, &template, &version, definition);
    let job = enqueue_child::<StackActivate>(cx, scope, uow, &input, parent).await?;
    match previous {
        Some(seen) => reactivate(cx, scope, uow, &seen, &activated, &job).await?,
        None => insert(cx, scope, uow, &input.target, &template, &activated, &job).await?,
    }
    insert_planned_parts(cx, scope, uow, &input.target, &job.id, &input.work.parts).await?;
    Ok(job)
}

/// Creates the input of the activation job.
fn input(
    target: StackTarget,
    template: &StackTemplate,
    version: &StackVersion,
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
        parts: target.plan_parts(&parts),
        features: definition.features,
        before_features,
    };
    StackInput { target, work }
}

/// Returns the newest inactive or failed stack of the template in the environment, which is activated again.
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

/// Activates an existing stack again.
async fn reactivate(
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
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await?;
    Ok(())
}

/// Inserts the stack with the name of its template. If the entity has a stack with that name, a part of the id is
/// appended.
async fn insert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    target: &StackTarget,
    template: &StackTemplate,
    activated: &ActivatedVersion,
    job: &Job,
) -> Result<()> {
    ensure_room_for_stack(cx, scope, uow, &target.entity_id).await?;
    let id = &target.stack_instance_id;
    // The last characters of an id are random; the first ones are its time.
    let from = id.as_str().len().saturating_sub(12);
    let distinct = format!("{} {}", template.name, &id.as_str()[from..]);
    let now = uow.now().await?;
    let action = WorkspaceStackEvent::Activate.transition().action;
    for name in [template.name.as_str(), &distinct] {
        let name = Name::parse(name).map_err(|error| Error::Internal(error.to_string()))?;
        let tenant = target.entity_id.clone();
        let mut stack =
            WorkspaceStack::create_pending(id.clone(), scope.id(), tenant, name, activated, now);
        stack.provision_job_id = Some(job.id.clone());
        match audited::insert(cx, scope, uow, stack, action).await {
            Err(Error::Store(StoreError::Conflict { index: "name", .. })) => {}
            outcome => return outcome.map(drop),
        }
    }
    Err(StoreError::retry("both names of the stack are taken").into())
}

/// Creates an app in a workspace stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateApp {
    /// The platform of the workspace stack.
    pub platform_id: PlatformId,
    /// The workspace stack that gets the app.
    pub stack_id: StackId,
    /// The name of the app, unique in the stack.
    pub app_name: AppName,
    /// The components of the app.
    pub app_type: AppType,
    /// Whether the app gets a database. It is bound to the app's service, or to its site if it has no service. Default:
    /// `false`.
    #[serde(default)]
    pub with_database: bool,
}

/// Creates an app: queues the job that creates its objects in the environment of its stack, or in `prod` if the stack
/// has none. For an existing app, the job creates only missing objects and keeps existing ones with their deployed
/// code.
///
/// # Errors
/// - `NOT_FOUND` if the stack does not exist.
/// - `INVALID_STATE` if the stack is neither active nor pending, or if the entity or one above it is suspended.
/// - `CONFLICT` if a name at the provider is taken.
/// - `LIMIT_REACHED` if too many jobs of the platform are queued.
pub async fn create_app(
    cx: &Context,
    scope: &PlatformScope<permission::JobCreate>,
    uow: &mut dyn UnitOfWork,
    command: CreateApp,
) -> Result<Stored<Job>> {
    let scope = scope.writer();
    let stacks = scope.records::<WorkspaceStack>(uow);
    let stack = stacks.get(&command.stack_id).await?;
    if !stack.accepts_apps() {
        let takes = [WorkspaceStackStatus::Pending, WorkspaceStackStatus::Active];
        return Err(IllegalTransition::new(stack.status, takes).into());
    }
    let entity = entity_tree::not_deleted(scope, uow, &stack.tenant_id).await?;
    entity_tree::ensure_not_suspended(scope, uow, &entity).await?;
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
        parts: target.plan_parts(&parts),
    };
    let input = StackInput { target, work };
    let job = enqueue::<AppCreate>(cx, scope, uow, &input).await?;
    insert_planned_parts(cx, scope, uow, &input.target, &job.id, &input.work.parts).await?;
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action: "app.creation_queued",
        entity_id: stack.id.to_string(),
        details: Some(json!({ "jobId": job.id, "appName": input.work.app_name })),
    };
    audited::record_event(cx, uow, event).await?;
    Ok(job)
}

/// Deactivates a workspace stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeactivateStack {
    /// The platform of the workspace stack.
    pub platform_id: PlatformId,
    /// The workspace stack to deactivate.
    pub stack_instance_id: StackId,
    /// The environment in which the stack runs. Default: `prod`.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
    /// Whether the databases, buckets, key-value namespaces and queues of the stack are removed too, with all their
    /// data. Default: `false`.
    #[serde(default)]
    pub delete_data: bool,
}

/// Deactivates a workspace stack: queues the job that removes the workers, pages and features of the stack and its
/// apps.
///
/// The data is kept: its resources stay `active`, and the stack uses them if it is activated again. A later request can
/// remove the data. A feature that another stack of the entity includes is kept.
///
/// # Errors
/// `NOT_FOUND` if the stack does not exist; `CONFLICT` if it runs in another environment; `LIMIT_REACHED` if too many
/// jobs of the platform are queued.
pub async fn deactivate(
    cx: &Context,
    scope: &PlatformScope<permission::JobCreate>,
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
    audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
    Ok(job)
}

/// Ends the stacks of an environment whose infrastructure is removed; `None` means all environments. Jobs that still
/// work on them fail when they read the new status.
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
            if !there || !event.transition().from.contains(&seen.status) {
                continue;
            }
            let next = seen.edit().after(event)?;
            audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
        }
    }
    Ok(())
}
