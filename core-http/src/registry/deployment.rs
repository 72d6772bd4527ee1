//! Endpoints for deployment records.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, DeploymentId, PlatformId, Result, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{Deployment, DeploymentChange};
use core_domain::use_case::registry::deployment;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::upserted;
use crate::kernel::{
    Cx, Endpoint, Input, Output, call_with_body, call_with_id, call_with_query, get, patch, post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/deployments";
const ONE: &str = "/api/v1/platforms/{platformId}/deployments/{deploymentId}";

type Writes = PlatformScope<permission::DeploymentWrite>;
type One = (PlatformId, DeploymentId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listDeploymentRecords")
            .summary("Lists the newest deployments of a platform.")
            .description(
                "Returns at most `limit` records, newest first, without pagination. \
                 `idempotencyKey` selects the deployments with a key, and `status=in_flight` \
                 those that have not ended.",
            )
            .reads(call_with_query(deployment::list).map(|found| {
                let deployments = found.into_iter().map(Stored::into_inner).collect();
                Output::new(Deployments { deployments })
            })),
        post(ALL, "createDeploymentRecord")
            .summary("Records a deployment that an external system makes.")
            .description(
                "The record starts as `queued`, and no job is queued: the external system does \
                 the work and updates the record. A repeated call with the same `idempotencyKey`, \
                 user, project and branch returns the existing record with 200. A key that \
                 belongs to another deployment of the platform is refused.",
            )
            .success(&[StatusCode::CREATED, StatusCode::OK])
            .refuses(&[Code::IdempotencyKeyReused, Code::LimitReached])
            .writes(
                call_with_body(deployment::create_external)
                    .map(|entered| upserted::upserted_response(&entered, entered.record.edit())),
            ),
        get(ONE, "getDeploymentRecord")
            .summary("Returns a deployment record.")
            .description("This includes deployments that have ended.")
            .reads(call_with_id(deployment::get)),
        patch(ONE, "updateDeploymentRecord")
            .summary("Updates a deployment that has not ended.")
            .description(
                "Fields that are not in the body stay unchanged, and `null` removes an optional \
                 value. The status only moves forward. If this ends a deployment that a job works \
                 on, the job ends as well. A call that changes nothing has no effect.",
            )
            .if_match()
            .refuses(&[Code::InvalidState])
            .writes(update),
    ]
}

/// The newest deployments of a platform.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Deployments {
    /// The deployment records, newest first.
    deployments: Vec<Deployment>,
}

async fn update(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), DeploymentChange>,
) -> Result<Stored<Deployment>> {
    deployment::update(cx, &scope, uow, &input.path.1, &input.body).await
}
