//! Builds.

use core_domain::access::PlatformScope;
use core_domain::kernel::{BuildId, Code, ListQuery, Page, PlatformId, Result, Stored, grant};
use core_domain::port::UnitOfWork;
use core_domain::registry::{Build, UpdateBuild};
use core_domain::use_case::registry::build;

use super::in_environment::InEnvironment;
use crate::kernel::{Cx, Endpoint, Input, get, patch};

type Reads = PlatformScope<grant::BuildRead>;
type OfPlatform = (PlatformId,);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/platforms/{platformId}/builds", "listBuilds")
            .summary("Lists a platform's builds, newest first.")
            .reads(list),
        get(
            "/api/v1/platforms/{platformId}/builds/latest",
            "getLatestBuild",
        )
        .summary("Shows the newest build in an environment.")
        .refuses(&[Code::NotFound])
        .reads(latest),
        patch(
            "/api/v1/platforms/{platformId}/builds/{buildId}",
            "updateBuild",
        )
        .summary("Notes what became of a build.")
        .if_match()
        .writes(update),
    ]
}

async fn list(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, ListQuery>,
) -> Result<Page<Stored<Build>>> {
    build::list(&scope, uow, &input.query).await
}

async fn latest(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, InEnvironment>,
) -> Result<Stored<Build>> {
    build::latest(&scope, uow, input.query.env).await
}

async fn update(
    cx: &Cx,
    scope: PlatformScope<grant::BuildWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, BuildId), (), UpdateBuild>,
) -> Result<Stored<Build>> {
    build::update(cx, &scope, uow, &input.path.1, input.body).await
}
