//! Endpoints for builds.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, Result, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::Build;
use core_domain::use_case::registry::build;

use super::in_environment::InEnvironment;
use crate::kernel::{Cx, Endpoint, Input, call_with_id_and_body, call_with_query, get, patch};

type Reads = PlatformScope<permission::BuildRead>;
type OfPlatform = (PlatformId,);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/platforms/{platformId}/builds", "listBuilds")
            .summary("Lists the builds of a platform, newest first.")
            .description(
                "Jobs create a build for each activation of a feature and for each deployment of \
                 a site.",
            )
            .reads(call_with_query(build::list)),
        get(
            "/api/v1/platforms/{platformId}/builds/latest",
            "getLatestBuild",
        )
        .summary("Returns the newest build of a platform in an environment.")
        .description("The query parameter `env` selects the environment. Default: `prod`.")
        .refuses(&[Code::NotFound])
        .reads(latest),
        patch(
            "/api/v1/platforms/{platformId}/builds/{buildId}",
            "updateBuild",
        )
        .summary("Updates the outcome and the details of a build.")
        .description(
            "For builds that run outside of the suite, which report their result here. Fields \
             that are not in the body stay unchanged, and `null` removes an optional value. If \
             the status ends the build and `completedAt` is not given, the current time is set. A \
             repeated call with the same values changes nothing.",
        )
        .if_match()
        .writes(call_with_id_and_body(build::update)),
    ]
}

async fn latest(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, InEnvironment>,
) -> Result<Stored<Build>> {
    build::latest(&scope, uow, input.query.env).await
}
