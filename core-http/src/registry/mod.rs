//! The registry: platforms, entities, infrastructure resources, lifecycle, audit, onboarding, webhooks.

mod audit;
mod deletion;
mod entity;
mod onboarding;
mod platform;
mod platform_life;
mod resource;
mod webhook;
mod webhook_delivery;

use std::sync::Arc;

use crate::kernel::{App, Endpoint, Service, ServiceError, tagged};

/// The service: documented paths, and what remains of them behind a gateway: `/api/v1/platforms` and
/// `/api/v1/onboarding` both lead here and are taken off.
///
/// # Errors
/// When the table of endpoints contradicts itself.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    Service::builder("registry", app, endpoints())
        .mount("/api/v1/platforms", "")
        .mount("/api/v1/onboarding", "")
        .mount("/api/v1", "")
        .build()
}

/// The table of the registry.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let parts = [
        tagged("Platforms", platform::rows()),
        tagged("Platforms", platform_life::rows()),
        tagged("Entities", entity::rows()),
        tagged("Resources", resource::rows()),
        tagged("Audit", audit::rows()),
        tagged("Onboarding", onboarding::rows()),
        tagged("Webhooks", webhook::rows()),
        tagged("Webhooks", webhook_delivery::rows()),
    ];
    parts.into_iter().flatten().collect()
}
