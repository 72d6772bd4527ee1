//! The stack registry: templates and their immutable versions.

mod template;
mod version;

use std::sync::Arc;

use crate::kernel::{App, Endpoint, Service, ServiceError, tagged};

/// The service: documented paths, and the same without `/api/v1/stacks`.
///
/// # Errors
/// When the table of endpoints contradicts itself.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    Service::builder("stacks", app, endpoints())
        .mount("/api/v1/stacks", "")
        .build()
}

/// The table of the stack registry.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let parts = [
        tagged("Templates", template::rows()),
        tagged("Versions", version::rows()),
    ];
    parts.into_iter().flatten().collect()
}
