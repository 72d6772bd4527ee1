//! The registry: platforms, entities, infrastructure resources, lifecycle, audit, onboarding.

mod audit;
mod entities;
mod entity_shape;
mod onboarding;
mod platform_shape;
mod platforms;
mod query;
mod resource_shape;
mod resources;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use core_domain::kernel::Code;
use http::StatusCode;

use crate::kernel::{App, Endpoint, Service, ServiceError, delete, get, patch, post};

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
        platform_endpoints(),
        life_endpoints(),
        entity_endpoints(),
        resource_endpoints(),
        audit_endpoints(),
        onboarding_endpoints(),
    ];
    parts.into_iter().flatten().collect()
}

fn platform_endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/platforms", "listPlatforms")
            .summary("Lists the platforms the caller reaches, newest first.")
            .reads(platforms::list),
        post("/api/v1/platforms", "createPlatform")
            .summary("Makes a platform.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken])
            .writes(platforms::create),
        get("/api/v1/platforms/{platformId}", "getPlatform")
            .summary("Shows a platform.")
            .reads_once(platforms::show),
        patch("/api/v1/platforms/{platformId}", "updatePlatform")
            .summary("Changes a platform.")
            .refuses(&[Code::VersionConflict, Code::InvalidState, Code::SlugTaken])
            .writes(platforms::update),
        delete("/api/v1/platforms/{platformId}", "deletePlatform")
            .summary("Deletes a platform; it can be restored for 30 days. With dryRun only tells what would go.")
            .refuses(&[Code::VersionConflict, Code::InvalidState])
            .writes(platforms::remove),
    ]
}

fn life_endpoints() -> Vec<Endpoint> {
    vec![
        post("/api/v1/platforms/{platformId}/suspend", "suspendPlatform")
            .summary("Refuses the platform's callers and holds its jobs.")
            .refuses(&[Code::InvalidState])
            .writes(platforms::suspend),
        post("/api/v1/platforms/{platformId}/restore", "restorePlatform")
            .summary("Lets a suspended, cancelled or deleted platform be used again.")
            .refuses(&[Code::InvalidState, Code::SlugTaken])
            .writes(platforms::restore),
        post("/api/v1/platforms/{platformId}/cancel", "cancelPlatform")
            .summary("Gives a platform up.")
            .refuses(&[Code::InvalidState])
            .writes(platforms::cancel),
        post(
            "/api/v1/platforms/{platformId}/delete",
            "hardDeletePlatform",
        )
        .summary("Removes a platform for good, with all it has; it is gone when its job is done. With dryRun only tells what would go.")
        .refuses(&[Code::InvalidState])
        .writes(platforms::hard_delete),
        get("/api/v1/platforms/{platformId}/lifecycle", "listLifecycle")
            .summary("Lists what happened to a platform's status, newest first.")
            .reads(platforms::lifecycle),
    ]
}

fn entity_endpoints() -> Vec<Endpoint> {
    const ONE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}";
    vec![
        get("/api/v1/platforms/{platformId}/entities", "listEntities")
            .summary("Lists a platform's entities, newest first.")
            .reads(entities::list),
        post("/api/v1/platforms/{platformId}/entities", "createEntity")
            .summary("Makes an entity.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken, Code::Conflict, Code::InvalidState])
            .writes(entities::create),
        get(ONE, "getEntity")
            .summary("Shows an entity.")
            .reads(entities::show),
        patch(ONE, "updateEntity")
            .summary("Changes an entity.")
            .refuses(&[Code::VersionConflict, Code::InvalidState, Code::Conflict])
            .writes(entities::update),
        delete(ONE, "deleteEntity")
            .summary(
                "Deletes an entity that nothing lives below; operators may delete the whole tree.",
            )
            .refuses(&[Code::VersionConflict, Code::InvalidState, Code::Conflict])
            .writes(entities::remove),
        get(
            "/api/v1/platforms/{platformId}/entities/{entityId}/ancestors",
            "listAncestors",
        )
        .summary("Lists the entities above one, the root first.")
        .reads(entities::ancestors),
        get(
            "/api/v1/platforms/{platformId}/entities/{entityId}/descendants",
            "listDescendants",
        )
        .summary("Lists the entities below one, breadth first.")
        .reads(entities::descendants),
    ]
}

fn resource_endpoints() -> Vec<Endpoint> {
    const OF_ENTITY: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/resources";
    const OF_ENTITY_ALIAS: &str =
        "/api/v1/resources/platforms/{platformId}/entities/{entityId}/resources";
    const ONE: &str = "/api/v1/platforms/{platformId}/resources/{resourceId}";
    const ONE_ALIAS: &str = "/api/v1/resources/platforms/{platformId}/resources/{resourceId}";
    vec![
        get("/api/v1/lookup", "lookUpResource")
            .alias("/api/v1/resources/lookup")
            .summary("Finds the living resource with a name at the provider.")
            .reads(resources::look_up),
        get("/api/v1/platforms/{platformId}/resources", "listResources")
            .alias("/api/v1/resources/platforms/{platformId}/resources")
            .summary("Lists a platform's resources, newest first.")
            .reads(resources::list),
        get(OF_ENTITY, "listEntityResources")
            .alias(OF_ENTITY_ALIAS)
            .summary("Lists an entity's resources, newest first.")
            .reads(resources::list_of_entity),
        post(OF_ENTITY, "createResource")
            .alias(OF_ENTITY_ALIAS)
            .summary("Enters a resource into the catalogue.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::InvalidState])
            .writes(resources::create),
        get(ONE, "getResource")
            .alias(ONE_ALIAS)
            .summary("Shows a resource.")
            .reads(resources::show),
        patch(ONE, "updateResource")
            .alias(ONE_ALIAS)
            .summary("Changes a resource's entry.")
            .refuses(&[Code::VersionConflict, Code::InvalidState])
            .writes(resources::update),
        delete(ONE, "deleteResource")
            .alias(ONE_ALIAS)
            .summary("Deletes a resource's entry; at the provider nothing is removed.")
            .refuses(&[Code::VersionConflict, Code::InvalidState])
            .writes(resources::remove),
    ]
}

fn audit_endpoints() -> Vec<Endpoint> {
    vec![
        get("/api/v1/platforms/{platformId}/audit", "listPlatformAudit")
            .summary("Lists a platform's audit, newest first.")
            .reads(audit::of_platform),
        get("/api/v1/audit", "listAudit")
            .summary("Lists the audit across platforms, newest first.")
            .reads(audit::across),
    ]
}

fn onboarding_endpoints() -> Vec<Endpoint> {
    vec![
        post("/api/v1/onboarding/start", "startOnboarding")
            .summary("Asks for an organization with a platform; a job makes both.")
            .success(&[StatusCode::ACCEPTED])
            .refuses(&[Code::SlugTaken])
            .writes(onboarding::start),
        get("/api/v1/onboarding/status/{onboardingId}", "getOnboarding")
            .summary("Shows how far an onboarding is.")
            .reads(onboarding::status),
        get("/api/v1/onboarding/slug/{slug}", "checkSlug")
            .summary("Tells whether a slug is free.")
            .reads(onboarding::slug),
    ]
}
