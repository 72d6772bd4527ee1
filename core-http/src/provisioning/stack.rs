//! Endpoints that queue the jobs of stacks and their apps.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::workspace_stack::{
    self, ActivateStack, CreateApp, DeactivateStack,
};

use super::queued::{QueuedResponse, SUCCESS, queued_response};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, post};

type Creates = PlatformScope<permission::JobCreate>;

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/stack/activate", "activateStack")
            .summary("Activates a version of a stack template for an entity.")
            .description(
                "Queues a job that creates the resources, features and apps of the version. Its \
                 input has the id of the workspace stack. Each activation creates a workspace \
                 stack; but if the entity has an inactive or failed stack from this template in \
                 the environment, that one is activated again, with its data. Deprecated versions \
                 can be activated as well. With `dryRun=true` nothing is queued, and the response \
                 has the plan of the job.",
            )
            .success(SUCCESS)
            .refuses(&[
                Code::NotFound,
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
                Code::QuotaExceeded,
            ])
            .writes(activate),
        post("/api/v1/provision/stack/deactivate", "deactivateStack")
            .summary("Deactivates a workspace stack.")
            .description(
                "Queues a job that removes the workers, pages projects and features of the stack \
                 and of its apps. Features that another stack of the entity needs stay. The data \
                 is kept for a later activation, unless `deleteData` is set; it can also be \
                 deleted by a later call. With `dryRun=true` nothing is queued, and the response \
                 has the plan of the job.",
            )
            .success(SUCCESS)
            .refuses(&[
                Code::NotFound,
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
            ])
            .writes(deactivate),
        post("/api/v1/provision/app/create", "createApp")
            .summary("Creates an app in a workspace stack.")
            .description(
                "Queues a job that creates the parts of the app in the environment of the stack. \
                 A repeated call creates missing parts and leaves existing ones unchanged, \
                 including deployed code. The stack must be active or pending. With `dryRun=true` \
                 nothing is queued, and the response has the plan of the job.",
            )
            .success(SUCCESS)
            .refuses(&[
                Code::NotFound,
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
            ])
            .writes(create_app),
    ]
}

impl OnPlatform for Input<(), DryRunQuery, ActivateStack> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

impl OnPlatform for Input<(), DryRunQuery, DeactivateStack> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

impl OnPlatform for Input<(), DryRunQuery, CreateApp> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

async fn activate(
    cx: &Cx,
    scope: Creates,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, ActivateStack>,
) -> Result<QueuedResponse> {
    let job = workspace_stack::activate(cx, &scope, uow, input.body).await?;
    queued_response(uow, input.query, &job).await
}

async fn deactivate(
    cx: &Cx,
    scope: Creates,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, DeactivateStack>,
) -> Result<QueuedResponse> {
    let job = workspace_stack::deactivate(cx, &scope, uow, input.body).await?;
    queued_response(uow, input.query, &job).await
}

async fn create_app(
    cx: &Cx,
    scope: Creates,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, CreateApp>,
) -> Result<QueuedResponse> {
    let job = workspace_stack::create_app(cx, &scope, uow, input.body).await?;
    queued_response(uow, input.query, &job).await
}
