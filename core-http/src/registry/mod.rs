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

use crate::kernel::{App, Endpoint, Service, ServiceBuilder, ServiceError, tagged};

/// Builds the service. It responds to the documented paths, and to the paths that remain after a gateway has removed
/// `/api/v1/platforms` or `/api/v1/onboarding`.
///
/// # Errors
/// [`ServiceError`] if the endpoint table is inconsistent.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    let builder = Service::builder("registry", app, endpoints())
        .mount("/api/v1/platforms", "")
        .mount("/api/v1/onboarding", "")
        .mount("/api/v1", "");
    describe(builder).build()
}

/// Adds the texts about the service to its OpenAPI document.
fn describe(builder: ServiceBuilder) -> ServiceBuilder {
    builder
        .purpose(
            "The registry manages platforms and their records: entities, infrastructure \
             resources, features, workspace stacks, domains, configuration and deployments. It \
             also has the audit log, the change feed and webhooks.",
        )
        .tag("Platforms", "Platforms and their lifecycle.")
        .tag("Entities", "Tenants and sub-tenants of a platform.")
        .tag(
            "Resources",
            "Records of objects at the infrastructure provider.",
        )
        .tag(
            "Features",
            "Features that are active for an entity in an environment.",
        )
        .tag(
            "Secrets",
            "The status of the secrets of resources, without their values.",
        )
        .tag("Builds", "Builds of a platform's code.")
        .tag(
            "Workspace stacks",
            "Stacks of an entity, which group features and resources.",
        )
        .tag(
            "Configuration",
            "Versioned configuration values of a platform.",
        )
        .tag("DNS records", "DNS records of workspace stacks.")
        .tag(
            "Custom domains",
            "Hostnames of tenants that lead to a platform.",
        )
        .tag("Deployments", "Records of deployments of a platform.")
        .tag("Audit", "The signed log of all changes.")
        .tag("Events", "The stream of changes, as server-sent events.")
        .tag(
            "Onboarding",
            "Creation of an organization together with its platform.",
        )
        .tag(
            "Webhooks",
            "HTTP notifications of changes, and their deliveries.",
        )
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
