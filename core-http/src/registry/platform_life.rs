//! The life of platforms.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, ListQuery, Page, PlatformId, Result, Stored, grant};
use core_domain::port::UnitOfWork;
use core_domain::registry::{LifecycleRecord, Platform, PlatformEvent};
use core_domain::use_case::registry::{platform, removal_plan};

use super::deletion::Deletion;
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, ReasonBody, Versioned, get, post};

type One = (PlatformId,);
type Manages = PlatformScope<grant::PlatformManage>;
type Move = Input<One, (), ReasonBody>;

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/platforms/{platformId}/suspend", "suspendPlatform")
            .summary("Refuses the platform's callers and holds its jobs.")
            .if_match()
            .refuses(&[Code::InvalidState])
            .writes(suspend),
        post("/api/v1/platforms/{platformId}/restore", "restorePlatform")
            .summary("Lets a suspended, cancelled or deleted platform be used again.")
            .if_match()
            .refuses(&[Code::InvalidState, Code::SlugTaken])
            .writes(restore),
        post("/api/v1/platforms/{platformId}/cancel", "cancelPlatform")
            .summary("Gives a platform up.")
            .if_match()
            .refuses(&[Code::InvalidState])
            .writes(cancel),
        post("/api/v1/platforms/{platformId}/delete", "hardDeletePlatform")
            .summary("Removes a platform for good, with all it has; it is gone when its job is done. With dryRun only tells what would go.")
            .if_match()
            .refuses(&[Code::InvalidState, Code::StepUpRequired])
            .writes(hard_delete),
        get("/api/v1/platforms/{platformId}/lifecycle", "listLifecycle")
            .summary("Lists what happened to a platform's status, newest first.")
            .reads(lifecycle),
    ]
}

async fn suspend(
    cx: &Cx,
    scope: Manages,
    uow: &mut dyn UnitOfWork,
    input: Move,
) -> Result<Stored<Platform>> {
    platform::suspend(cx, &scope, uow, input.body.reason.as_ref()).await
}

async fn restore(
    cx: &Cx,
    scope: PlatformScope<grant::PlatformRestore>,
    uow: &mut dyn UnitOfWork,
    input: Move,
) -> Result<Stored<Platform>> {
    platform::restore(cx, &scope, uow, input.body.reason.as_ref()).await
}

async fn cancel(
    cx: &Cx,
    scope: Manages,
    uow: &mut dyn UnitOfWork,
    input: Move,
) -> Result<Stored<Platform>> {
    platform::cancel(cx, &scope, uow, input.body.reason.as_ref()).await
}

async fn hard_delete(
    cx: &Cx,
    scope: Manages,
    uow: &mut dyn UnitOfWork,
    input: Input<One, DryRunQuery, ReasonBody>,
) -> Result<Versioned<Deletion<Platform>>> {
    let reason = input.body.reason.as_ref();
    if input.query.dry_run {
        let event = PlatformEvent::HardDelete;
        let plan = removal_plan::of_platform(cx, &scope, uow, event).await?;
        return Ok(Versioned::of(scope.platform(), Deletion::planned(plan)));
    }
    let deleted = platform::hard_delete(cx, &scope, uow, &cx.app.kinds, reason).await?;
    Ok(Versioned::of(&deleted, Deletion::Done(deleted.edit())))
}

async fn lifecycle(
    _: &Cx,
    scope: PlatformScope<grant::PlatformRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<One, ListQuery>,
) -> Result<Page<Stored<LifecycleRecord>>> {
    platform::lifecycle(&scope, uow, &input.query).await
}
