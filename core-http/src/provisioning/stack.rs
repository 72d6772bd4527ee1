//! The operations that queue the jobs of stacks and their apps.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, Result, grant};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::stack_instance::{
    self, ActivateStack, CreateApp, DeactivateStack,
};

use super::queued::{Queued, SUCCESS, queued};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, post};

type Creates = PlatformScope<grant::JobCreate>;

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/stack/activate", "activateStack")
            .summary("Queues the job that activates a version of a stack template for an entity. Its input names the workspace stack With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(activate),
        post("/api/v1/provision/stack/deactivate", "deactivateStack")
            .summary("Queues the job that takes a workspace stack down; its data stays unless it is to be deleted With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(deactivate),
        post("/api/v1/provision/app/create", "createApp")
            .summary("Queues the job that makes an app in a workspace stack; what is there of it stays as it is With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::Conflict, Code::InvalidState, Code::LimitReached])
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
) -> Result<Queued> {
    let job = stack_instance::activate(cx, &scope, uow, input.body).await?;
    queued(uow, input.query, &job).await
}

async fn deactivate(
    cx: &Cx,
    scope: Creates,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, DeactivateStack>,
) -> Result<Queued> {
    let job = stack_instance::deactivate(cx, &scope, uow, input.body).await?;
    queued(uow, input.query, &job).await
}

async fn create_app(
    cx: &Cx,
    scope: Creates,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, CreateApp>,
) -> Result<Queued> {
    let job = stack_instance::create_app(cx, &scope, uow, input.body).await?;
    queued(uow, input.query, &job).await
}
