//! Endpoints that change the status of platforms, and their lifecycle records.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, Result, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{Platform, PlatformEvent};
use core_domain::use_case::registry::{platform, removal_plan};

use super::deletion::Deletion;
use crate::kernel::{
    Cx, DryRunQuery, Endpoint, Input, ReasonBody, Versioned, call_with_query, get, post,
};

type One = (PlatformId,);
type Manages = PlatformScope<permission::PlatformManage>;
type Move = Input<One, (), ReasonBody>;

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/platforms/{platformId}/suspend", "suspendPlatform")
            .summary("Suspends a platform.")
            .description(
                "Requests of the callers of the platform are refused with 451, its jobs are held, \
                 and a job stops the serving of its hostnames. The `reason` is stored in the \
                 platform and in the lifecycle record. A platform that is not active is refused.",
            )
            .if_match()
            .refuses(&[Code::InvalidState])
            .writes(suspend),
        post("/api/v1/platforms/{platformId}/restore", "restorePlatform")
            .summary("Restores a suspended, cancelled or deleted platform.")
            .description(
                "The platform becomes active: its callers are accepted, its jobs run, and its \
                 hostnames are served. A deleted platform can be restored for 30 days, if its \
                 slug is still free. Only an operator restores a platform that an operator \
                 suspended.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::SlugTaken])
            .writes(restore),
        post("/api/v1/platforms/{platformId}/cancel", "cancelPlatform")
            .summary("Cancels a platform.")
            .description(
                "The platform gets the status `cancelled`, with the given `reason`. Its records \
                 and infrastructure are kept, and it accepts no deployments. It can be restored.",
            )
            .if_match()
            .refuses(&[Code::InvalidState])
            .writes(cancel),
        post(
            "/api/v1/platforms/{platformId}/delete",
            "hardDeletePlatform",
        )
        .summary("Removes a platform permanently, with everything it contains.")
        .description(
            "Marks the platform as deleted, cancels its other jobs, and queues a job that \
                 removes its infrastructure. When the job has completed, all records of the \
                 platform are removed; this cannot be undone. If the removal failed, an operator \
                 starts it again with another call. With `dryRun=true` nothing is removed, and \
                 the response has the number of records that would be removed.",
        )
        .if_match()
        .refuses(&[Code::InvalidState, Code::StepUpRequired])
        .writes(hard_delete),
        get("/api/v1/platforms/{platformId}/lifecycle", "listLifecycle")
            .summary("Lists the status changes of a platform, newest first.")
            .description(
                "Each record has the statuses before and after the change, the actor and the \
                 reason.",
            )
            .reads(call_with_query(platform::lifecycle)),
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
    scope: PlatformScope<permission::PlatformRestore>,
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
        return Ok(Versioned::of(scope.platform(), Deletion::from_plan(plan)));
    }
    let deleted = platform::hard_delete(cx, &scope, uow, &cx.app.kinds, reason).await?;
    Ok(Versioned::of(&deleted, Deletion::Done(deleted.edit())))
}
