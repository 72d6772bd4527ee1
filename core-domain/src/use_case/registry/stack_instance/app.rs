//! Making apps for stacks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::entries;
use crate::access::{AuditEvent, PlatformScope, audited};
use crate::kernel::{
    Context, Environment, IllegalMove, PlatformId, Result, StackId, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{WorkspaceStack, WorkspaceStackStatus};
use crate::stacks::{AppName, AppType, parts_of_app};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::entity;
use crate::use_case::registry::jobs::{AppCreate, NewApp, StackInput, StackTarget};

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
    entries::enter_planned(cx, scope, uow, of, &input.work.parts).await?;
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action: "app.creation_queued",
        entity_id: stack.id.to_string(),
        details: Some(json!({ "jobId": job.id, "appName": input.work.app_name })),
    };
    audited::event(cx, uow, event).await?;
    Ok(job)
}
