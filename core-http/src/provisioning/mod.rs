//! Provisioning: queueing jobs, looking at them, what operators do to them, and the suspension of a platform as other
//! services set it.

mod auth;
mod dlq;
mod domain;
mod events;
mod feature;
mod hold;
mod job;
mod operate;
mod provision;
mod queued;
mod stack;

use std::sync::Arc;

use crate::kernel::{App, Endpoint, Service, ServiceError, tagged};
use crate::platform_status;

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
    let suspension = platform_status::row("setProvisioningPlatformStatus");
    let parts = [
        tagged("Provisioning", provision::rows()),
        tagged("Provisioning", domain::rows()),
        tagged("Provisioning", auth::rows()),
        tagged("Provisioning", feature::rows()),
        tagged("Provisioning", stack::rows()),
        tagged("Jobs", job::rows()),
        tagged("Jobs", events::rows()),
        tagged("Jobs", operate::rows()),
        tagged("Dead-letter queue", dlq::rows()),
        tagged("Holds", hold::rows()),
        tagged("Suspension", vec![suspension]),
    ];
    parts.into_iter().flatten().collect()
}
