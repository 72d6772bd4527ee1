//! Endpoints for workspace stacks.

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Code, ListQuery, Name, PlatformId, Result, StackId, Stored, Timestamp, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{
    CreateWorkspaceStack, WorkspaceStack, WorkspaceStackFilter, WorkspaceStackStatus,
};
use core_domain::use_case::registry::workspace_stack;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, ListP4, Output, Versioned, get, post};

const ALL: &str = "/api/v1/platforms/{platformId}/stacks";
const ONE: &str = "/api/v1/platforms/{platformId}/stacks/{stackId}";

type Reads = PlatformScope<grant::WorkspaceRead>;
type Writes = PlatformScope<grant::WorkspaceWrite>;
type OfPlatform = (PlatformId,);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listWorkspaceStacks")
            .summary("Lists the workspace stacks of a platform, newest first.")
            .description("The query parameter `tenantId` selects the stacks of an entity.")
            .reads(list),
        post(ALL, "createWorkspaceStack")
            .summary("Creates a workspace stack of an entity.")
            .description(
                "Only the record is created; nothing is provisioned. With `isDefault`, the stack \
                 replaces the current default stack of the entity. The name is unique among the \
                 stacks of the entity.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(create),
        get(ONE, "getWorkspaceStack")
            .summary("Returns a workspace stack.")
            .description("This includes stacks that jobs created from a stack template.")
            .reads(show),
    ]
}

/// The response to the creation of a workspace stack.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CreatedStack {
    /// The id of the stack.
    id: StackId,
    /// The name of the stack.
    name: Name,
    /// The status of the stack.
    status: WorkspaceStackStatus,
    /// `true` if this is the default stack of the entity.
    is_default: bool,
    /// The time at which the stack was created.
    created_at: Timestamp,
}

impl CreatedStack {
    fn of(stack: &WorkspaceStack) -> Self {
        Self {
            id: stack.id.clone(),
            name: stack.name.clone(),
            status: stack.status,
            is_default: stack.is_default,
            created_at: stack.created_at,
        }
    }
}

async fn list(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, ListQuery<WorkspaceStackFilter>>,
) -> Result<Output<ListP4<WorkspaceStack>>> {
    let page = workspace_stack::list(&scope, uow, &input.query).await?;
    Ok(Output::new(page.map(Stored::into_inner).into()))
}

async fn create(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, (), CreateWorkspaceStack>,
) -> Result<Versioned<CreatedStack>> {
    let stack = workspace_stack::create(cx, &scope, uow, input.body).await?;
    Ok(Versioned::of(&stack, CreatedStack::of(&stack)))
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, StackId)>,
) -> Result<Stored<WorkspaceStack>> {
    workspace_stack::get(&scope, uow, &input.path.1).await
}
