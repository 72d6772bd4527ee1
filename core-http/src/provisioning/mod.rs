//! Provisioning: looking at jobs, and the suspension of a platform as other services set it.

mod jobs;
mod shape;
mod suspension;

use std::sync::Arc;

use http::StatusCode;

use crate::kernel::{Access, App, Endpoint, Service, ServiceError, get, post};

/// The service: documented paths, and the same without `/api/v1/provision`.
///
/// # Errors
/// When the table of endpoints contradicts itself.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    Service::builder("provisioning", app, endpoints())
        .mount("/api/v1/provision", "")
        .build()
}

/// The table of provisioning.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/provision/jobs", "listJobs")
            .summary("Lists jobs, newest first.")
            .access(Access::Signed)
            .reads(jobs::list),
        get("/api/v1/provision/jobs/{jobId}", "getJob")
            .summary("Shows a job with its steps.")
            .access(Access::Signed)
            .reads(jobs::show),
        post("/internal/platform-status", "setProvisioningPlatformStatus")
            .summary("Suspends a platform, or lifts the suspension: callers are refused and its jobs held.")
            .access(Access::Service)
            .success(&[StatusCode::OK])
            .writes(suspension::set),
    ]
}
