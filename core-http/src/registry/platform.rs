//! Endpoints for platforms.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, Result, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{Platform, PlatformEvent};
use core_domain::use_case::registry::{platform, removal_plan};
use http::StatusCode;

use super::deletion::Deletion;
use crate::kernel::{
    Cx, DryRunQuery, Endpoint, Input, Output, Success, call_with_body, call_with_query, delete,
    get, patch, post,
};

const ALL: &str = "/api/v1/platforms";
const ONE: &str = "/api/v1/platforms/{platformId}";

type One = (PlatformId,);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listPlatforms")
            .summary("Lists the platforms that the caller can access, newest first.")
            .description(
                "Members see the platforms of the organization that they act for. Operators see \
                 all platforms; they can include deleted ones with `includeDeleted=true`.",
            )
            .reads(call_with_query(platform::list)),
        post(ALL, "createPlatform")
            .summary("Creates a platform.")
            .description(
                "The platform belongs to the organization that the caller acts for. Only the \
                 record is created; infrastructure needs a provisioning job. Tiers other than \
                 `starter` can only be set by operators.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken, Code::LimitReached])
            .writes(call_with_body(platform::create)),
        get(ONE, "getPlatform")
            .summary("Returns a platform.")
            .description("A deleted platform is also returned, until it is removed permanently.")
            .reads_once(show),
        patch(ONE, "updatePlatform")
            .summary("Updates a platform.")
            .description(
                "Fields that are not in the body stay unchanged. Only operators change the tier. \
                 A `status` has the same effects as the corresponding operation (suspend, \
                 restore, delete), but can be set from every other status; it needs the \
                 permission to manage the platform.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::SlugTaken])
            .writes(call_with_body(platform::update)),
        delete(ONE, "deletePlatform")
            .summary("Deletes a platform.")
            .description(
                "Marks the platform as deleted. It can be restored for 30 days, and its records \
                 and infrastructure are kept. A job stops the serving of its hostnames. With \
                 `dryRun=true` nothing is deleted, and the response has the number of records \
                 that would be removed.",
            )
            .if_match()
            .refuses(&[Code::InvalidState])
            .writes(remove),
    ]
}

async fn show(
    _: &Cx,
    scope: PlatformScope<permission::PlatformRead>,
    _: &mut dyn UnitOfWork,
    _: Input<One>,
) -> Result<Stored<Platform>> {
    Ok(platform::get(&scope))
}

async fn remove(
    cx: &Cx,
    scope: PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<One, DryRunQuery>,
) -> Result<Output<Deletion<Success>>> {
    if input.query.dry_run {
        let event = PlatformEvent::Delete;
        let plan = removal_plan::of_platform(cx, &scope, uow, event).await?;
        return Ok(Output::new(Deletion::from_plan(plan)));
    }
    platform::delete(cx, &scope, uow).await?;
    Ok(Output::new(Deletion::success()))
}
