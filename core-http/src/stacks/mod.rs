//! The stack registry: templates and their immutable versions.

mod shape;
mod templates;
mod versions;

use std::sync::Arc;

use core_domain::kernel::Code;
use http::StatusCode;

use crate::kernel::{Access, App, Endpoint, Service, ServiceError, delete, get, patch, post};

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
    vec![
        get("/api/v1/stacks", "listStackTemplates")
            .summary("Lists the templates, newest first.")
            .access(Access::Signed)
            .reads(templates::list),
        post("/api/v1/stacks", "createStackTemplate")
            .summary("Makes a template.")
            .access(Access::Operator)
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict])
            .writes(templates::create),
        get("/api/v1/stacks/{name}", "getStackTemplate")
            .summary("Shows a template and its latest version.")
            .access(Access::Signed)
            .reads(templates::show),
        patch("/api/v1/stacks/{name}", "updateStackTemplate")
            .summary("Changes a template, or whether it is offered.")
            .access(Access::Operator)
            .refuses(&[Code::VersionConflict])
            .writes(templates::update),
        get("/api/v1/stacks/{name}/versions", "listStackVersions")
            .summary("Lists the versions of a template, highest precedence first.")
            .access(Access::Signed)
            .reads(versions::list),
        post("/api/v1/stacks/{name}/versions", "publishStackVersion")
            .summary("Publishes a version; it never changes afterwards.")
            .access(Access::Operator)
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::InvalidState])
            .writes(versions::publish),
        get("/api/v1/stacks/{name}/{version}", "getStackVersion")
            .summary("Shows a version.")
            .access(Access::Signed)
            .reads(versions::show),
        delete("/api/v1/stacks/{name}/{version}", "deprecateStackVersion")
            .summary("Deprecates a version; it stays readable and usable.")
            .access(Access::Operator)
            .refuses(&[Code::VersionConflict])
            .writes(versions::deprecate),
    ]
}
