//! The registry: platforms, entities, infrastructure resources and their secrets, features, builds, workspace stacks,
//! DNS records, custom domains, configuration, deployment records, lifecycle, audit, change feed, webhooks, onboarding.

mod audit;
mod audit_export;
mod build;
mod config;
mod deletion;
mod deployment;
mod dns;
mod domain;
mod entity;
mod events;
mod feature;
mod in_environment;
mod onboarding;
mod platform;
mod platform_life;
mod resource;
mod secret;
mod upserted;
mod webhook;
mod webhook_delivery;
mod workspace_stack;

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
        tagged("Features", feature::rows()),
        tagged("Secrets", secret::rows()),
        tagged("Builds", build::rows()),
        tagged("Workspace stacks", workspace_stack::rows()),
        tagged("Configuration", config::rows()),
        tagged("DNS records", dns::rows()),
        tagged("Custom domains", domain::rows()),
        tagged("Deployments", deployment::rows()),
        tagged("Audit", audit::rows()),
        tagged("Events", events::rows()),
        tagged("Onboarding", onboarding::rows()),
        tagged("Webhooks", webhook::rows()),
        tagged("Webhooks", webhook_delivery::rows()),
    ];
    parts.into_iter().flatten().collect()
}
