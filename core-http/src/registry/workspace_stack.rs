//! Endpoints for workspace stacks.

use core_domain::kernel::{Code, Name, StackId, Stored, Timestamp};
use core_domain::registry::{WorkspaceStack, WorkspaceStackStatus};
use core_domain::use_case::registry::workspace_stack;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{
    Endpoint, ListP4, Output, Versioned, call_with_body, call_with_id, call_with_query, get, post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/stacks";
const ONE: &str = "/api/v1/platforms/{platformId}/stacks/{stackId}";

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listWorkspaceStacks")
            .summary("Lists the workspace stacks of a platform, newest first.")
            .description("The query parameter `tenantId` selects the stacks of an entity.")
            .reads(
                call_with_query(workspace_stack::list)
                    .map(|page| Output::new(ListP4::from(page.map(Stored::into_inner)))),
            ),
        post(ALL, "createWorkspaceStack")
            .summary("Creates a workspace stack of an entity.")
            .description(
                "Only the record is created; nothing is provisioned. With `isDefault`, the stack \
                 replaces the current default stack of the entity. The name is unique among the \
                 stacks of the entity.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
                Code::QuotaExceeded,
            ])
            .writes(
                call_with_body(workspace_stack::create)
                    .map(|stack| Versioned::of(&stack, CreatedStack::of(&stack))),
            ),
        get(ONE, "getWorkspaceStack")
            .summary("Returns a workspace stack.")
            .description("This includes stacks that jobs created from a stack template.")
            .reads(call_with_id(workspace_stack::get)),
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
