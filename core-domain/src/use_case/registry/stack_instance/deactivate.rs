//! Taking stacks down.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::access::{PlatformScope, audited};
use crate::kernel::{
    Code, Context, Environment, Error, Machine, PlatformId, Result, StackId, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{WorkspaceStack, WorkspaceStackEvent};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::jobs::{StackDeactivate, StackInput, StackRemoval, StackTarget};

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
