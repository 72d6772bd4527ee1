//! Endpoints for platforms.

use core_domain::access::{OrganizationScope, PlatformScope};
use core_domain::kernel::{
    Code, DeletedFilter, ListQuery, Page, PlatformId, Result, Stored, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{CreatePlatform, Platform, PlatformEvent, UpdatePlatform};
use core_domain::use_case::registry::{platform, removal_plan};
use http::StatusCode;

use super::deletion::Deletion;
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, Output, Success, delete, get, patch, post};

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
            .reads(list),
        post(ALL, "createPlatform")
            .summary("Creates a platform.")
            .description(
                "The platform belongs to the organization that the caller acts for. Only the \
                 record is created; infrastructure needs a provisioning job. Tiers other than \
                 `starter` can only be set by operators.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken, Code::LimitReached])
            .writes(create),
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
            .writes(update),
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

async fn list(
    cx: &Cx,
    scope: OrganizationScope<grant::PlatformRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<DeletedFilter>>,
) -> Result<Page<Stored<Platform>>> {
    platform::list(cx, &scope, uow, &input.query).await
}

async fn create(
    cx: &Cx,
    scope: OrganizationScope<grant::PlatformCreate>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreatePlatform>,
) -> Result<Stored<Platform>> {
    platform::create(cx, &scope, uow, input.body).await
}

async fn show(
    _: &Cx,
    scope: PlatformScope<grant::PlatformRead>,
    _: &mut dyn UnitOfWork,
    _: Input<One>,
) -> Result<Stored<Platform>> {
    Ok(platform::get(&scope))
}

async fn update(
    cx: &Cx,
    scope: PlatformScope<grant::PlatformUpdate>,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), UpdatePlatform>,
) -> Result<Stored<Platform>> {
    platform::update(cx, &scope, uow, input.body).await
}

async fn remove(
    cx: &Cx,
    scope: PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    input: Input<One, DryRunQuery>,
) -> Result<Output<Deletion<Success>>> {
    if input.query.dry_run {
        let event = PlatformEvent::Delete;
        let plan = removal_plan::of_platform(cx, &scope, uow, event).await?;
        return Ok(Output::new(Deletion::planned(plan)));
    }
    platform::delete(cx, &scope, uow).await?;
    Ok(Output::new(Deletion::done()))
}
