//! Platforms.

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
            .summary("Lists the platforms the caller reaches, newest first.")
            .reads(list),
        post(ALL, "createPlatform")
            .summary("Creates a platform.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken, Code::LimitReached])
            .writes(create),
        get(ONE, "getPlatform")
            .summary("Shows a platform.")
            .reads_once(show),
        patch(ONE, "updatePlatform")
            .summary("Changes a platform.")
            .if_match()
            .refuses(&[Code::InvalidState, Code::SlugTaken])
            .writes(update),
        delete(ONE, "deletePlatform")
            .summary("Deletes a platform; it can be restored for 30 days. With dryRun only tells what would go.")
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
