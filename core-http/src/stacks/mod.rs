//! The stack registry: stack templates and their immutable versions.

mod template;
mod version;

use std::sync::Arc;

use crate::kernel::{App, Endpoint, Service, ServiceError, with_tag};
use core_domain::kernel::SuiteService;

/// Builds the service. It responds to the documented paths, and to the same paths without `/api/v1/stacks`.
///
/// # Errors
/// [`ServiceError`] if the endpoint table is inconsistent.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    Service::builder(SuiteService::Stacks.as_str(), app, endpoints())
        .mount("/api/v1/stacks", "")
        .purpose(
            "The stack registry contains stack templates and their immutable versions, from which \
             workspace stacks are created.",
        )
        .tag(
            "Templates",
            "Stack templates, which have a name and versions.",
        )
        .tag("Versions", "Immutable versions of a stack template.")
        .build()
}

/// Returns the endpoint table of the stack registry.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let parts = [
        with_tag("Templates", template::rows()),
        with_tag("Versions", version::rows()),
    ];
    parts.into_iter().flatten().collect()
}
