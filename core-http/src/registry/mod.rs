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

use crate::kernel::{App, Endpoint, Service, ServiceBuilder, ServiceError, with_tag};
use core_domain::kernel::SuiteService;

/// Builds the service. It responds to the documented paths, and to the paths that remain after a gateway has removed
/// `/api/v1/platforms` or `/api/v1/onboarding`.
///
/// # Errors
/// [`ServiceError`] if the endpoint table is inconsistent.
pub fn service(app: Arc<App>) -> Result<Service, ServiceError> {
    let builder = Service::builder(SuiteService::Registry.as_str(), app, endpoints())
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
        with_tag("Platforms", platform::rows()),
        with_tag("Platforms", platform_life::rows()),
        with_tag("Entities", entity::rows()),
        with_tag("Resources", resource::rows()),
        with_tag("Features", feature::rows()),
        with_tag("Secrets", secret::rows()),
        with_tag("Builds", build::rows()),
        with_tag("Workspace stacks", workspace_stack::rows()),
        with_tag("Configuration", config::rows()),
        with_tag("DNS records", dns_record::rows()),
        with_tag("Custom domains", custom_domain::rows()),
        with_tag("Deployments", deployment::rows()),
        with_tag("Audit", audit::rows()),
        with_tag("Events", events::rows()),
        with_tag("Onboarding", onboarding::rows()),
        with_tag("Webhooks", webhook::rows()),
        with_tag("Webhooks", webhook_delivery::rows()),
    ];
    parts.into_iter().flatten().collect()
}
