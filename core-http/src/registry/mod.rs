//! The registry service: platforms, entities, infrastructure resources and their secrets, features, builds, workspace
//! stacks, DNS records, custom domains, configuration, deployment records, lifecycle, audit log, change feed, webhooks
//! and onboarding.

mod audit;
mod audit_export;
mod build;
mod config;
mod custom_domain;
mod deletion;
mod deployment;
mod dns_record;
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

/// Builds the service. It responds to the documented paths, and to the paths that remain after a gateway has removed
/// `/api/v1/platforms` or `/api/v1/onboarding`.
///
/// # Errors
/// [`ServiceError`] if the endpoint table is inconsistent.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    Service::builder("registry", app, endpoints())
        .mount("/api/v1/platforms", "")
        .mount("/api/v1/onboarding", "")
        .mount("/api/v1", "")
        .build()
}

/// Returns the endpoint table of the registry.
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
        tagged("DNS records", dns_record::rows()),
        tagged("Custom domains", custom_domain::rows()),
        tagged("Deployments", deployment::rows()),
        tagged("Audit", audit::rows()),
        tagged("Events", events::rows()),
        tagged("Onboarding", onboarding::rows()),
        tagged("Webhooks", webhook::rows()),
        tagged("Webhooks", webhook_delivery::rows()),
    ];
    parts.into_iter().flatten().collect()
}
