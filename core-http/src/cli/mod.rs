//! The command line's service: deploying a built site, and looking at a deployment.

mod deploy;
mod deployments;
mod media;
mod multipart;
mod request;
mod shape;
mod turns;
mod upload;

use std::sync::Arc;

use core_domain::cli::{BRANCH_PATTERN, Limits, PRODUCTION};
use core_domain::kernel::Code;
use core_domain::port::SiteArchives;
use http::StatusCode;
use serde_json::json;

use self::deploy::Deploying;
use crate::kernel::header_names::{DEPLOY_BRANCH, USER_ID};
use crate::kernel::{App, Endpoint, Service, ServiceError, get, post};

/// The service: documented paths, and the same behind a gateway that took `/api/v1/cli` off: `/platforms/{platformId}/..`.
///
/// # Errors
/// When the table of endpoints contradicts itself.
pub fn service(app: Arc<App>, archives: Arc<dyn SiteArchives>) -> Result<Service, ServiceError> {
    Service::builder("cli", app, endpoints(archives, Limits::default()))
        .mount("/api/v1", "")
        .build()
}

/// The table of the command line's service. Of the limits only those of uploads are kept here; the others are the
/// archives'.
#[must_use]
pub fn endpoints(archives: Arc<dyn SiteArchives>, limits: Limits) -> Vec<Endpoint> {
    vec![
        post("/api/v1/platforms/{platformId}/deploy", "deploy")
            .summary("Deploys a built site: an archive with an index.html, in a body or in the field `file` of a form.")
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .takes(media::TAKEN)
            .header(
                DEPLOY_BRANCH,
                json!({ "type": "string", "pattern": BRANCH_PATTERN, "default": PRODUCTION }),
            )
            .header(USER_ID, json!({ "type": "string", "minLength": 1 }))
            .refuses(&[
                Code::BadRequest,
                Code::ValidationError,
                Code::Forbidden,
                Code::Conflict,
                Code::InvalidState,
                Code::PayloadTooLarge,
                Code::UnsupportedMediaType,
                Code::UpstreamError,
                Code::ServiceUnavailable,
            ])
            .uploads(Deploying::new(archives, limits)),
        get(
            "/api/v1/platforms/{platformId}/deployments/{deploymentId}",
            "getDeployment",
        )
        .summary("Shows where a deployment stands; with `wait` once it has ended.")
        .refuses(&[Code::Forbidden])
        .plain(deployments::show),
    ]
}
