//! Every documented route reaches its endpoint in every spelling, and there are no other routes.

use core_http::kernel::Service;
use http::Method;
use serde_json::{Value, json};

use super::contract::ENDPOINTS;
use crate::world::World;

/// Returns each service with its name in the list of documented endpoints.
fn services(world: &World) -> [(&'static str, Service); 6] {
    let of = |api: &crate::world::Api| api.0.clone();
    [
        ("stack_registry", of(&world.stacks)),
        ("provisioning", of(&world.provisioning)),
        ("registry", of(&world.registry)),
        ("iam", of(&world.iam)),
        ("cli", of(&world.cli)),
        ("billing", of(&world.billing)),
    ]
}

/// Routes that are not in the interface, but that users of such a service expect.
const EXTENSIONS: &[(&str, &str)] = &[
    // CLI service
    ("POST", "/api/v1/platforms/{platformId}/deploy/plan"),
    ("GET", "/api/v1/platforms/{platformId}/deployments"),
    (
        "GET",
        "/api/v1/platforms/{platformId}/deployments/{deploymentId}/events",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/deployments/{deploymentId}/rollback",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/deployments/{deploymentId}/promote",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/deployments/{deploymentId}/pin",
    ),
    (
        "DELETE",
        "/api/v1/platforms/{platformId}/deployments/{deploymentId}/pin",
    ),
    ("GET", "/api/v1/platforms/{platformId}/features"),
    ("GET", "/api/v1/platforms/{platformId}/secrets"),
    (
        "DELETE",
        "/api/v1/platforms/{platformId}/secrets/{secretName}",
    ),
    // billing
    ("POST", "/internal/billing/tick"),
    // better-auth
    ("GET", "/api/auth/ok"),
    ("GET", "/api/auth/list-sessions"),
    ("POST", "/api/auth/revoke-session"),
    ("POST", "/api/auth/revoke-sessions"),
    ("POST", "/api/auth/revoke-other-sessions"),
    ("POST", "/api/auth/update-user"),
    ("POST", "/api/auth/change-password"),
    ("POST", "/api/auth/verify-password"),
    ("GET", "/api/auth/list-accounts"),
    ("POST", "/api/auth/two-factor/enable"),
    ("POST", "/api/auth/two-factor/disable"),
    ("POST", "/api/auth/two-factor/get-totp-uri"),
    ("POST", "/api/auth/two-factor/generate-backup-codes"),
    ("POST", "/api/auth/two-factor/verify-totp"),
    ("POST", "/api/auth/two-factor/verify-backup-code"),
    ("GET", "/api/auth/passkey/generate-register-options"),
    ("POST", "/api/auth/passkey/verify-registration"),
    ("GET", "/api/auth/passkey/generate-authenticate-options"),
    ("POST", "/api/auth/passkey/verify-authentication"),
    ("GET", "/api/auth/passkey/list-user-passkeys"),
    ("POST", "/api/auth/passkey/update-passkey"),
    ("POST", "/api/auth/passkey/delete-passkey"),
    ("POST", "/api/auth/request-password-reset"),
    ("GET", "/api/auth/reset-password/{token}"),
    ("POST", "/api/auth/reset-password"),
    ("POST", "/api/auth/send-verification-email"),
    ("GET", "/api/auth/verify-email"),
    ("POST", "/api/auth/verify-email"),
    ("GET", "/api/auth/organization/list"),
    ("GET", "/api/auth/organization/get-full-organization"),
    ("GET", "/api/auth/organization/get-organization"),
    ("GET", "/api/auth/organization/list-members"),
    ("GET", "/api/auth/organization/get-active-member"),
    ("GET", "/api/auth/organization/get-active-member-role"),
    ("GET", "/api/auth/organization/get-invitation"),
    ("GET", "/api/auth/organization/list-invitations"),
    ("GET", "/api/auth/organization/list-user-invitations"),
    ("POST", "/api/auth/api-key/create"),
    ("GET", "/api/auth/api-key/list"),
    ("GET", "/api/auth/api-key/get"),
    ("POST", "/api/auth/api-key/update"),
    ("POST", "/api/auth/api-key/delete"),
    ("POST", "/api/auth/api-key/rotate"),
    // additional routes of the registry and IAM
    (
        "GET",
        "/api/v1/platforms/{platformId}/config/{configKey}/history",
    ),
    (
        "GET",
        "/api/v1/platforms/{platformId}/config/{configKey}/history/{version}",
    ),
    (
        "GET",
        "/api/v1/platforms/{platformId}/config/{configKey}/diff",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/config/{configKey}/rollback",
    ),
    ("GET", "/api/v1/platforms/{platformId}/domains/{domainId}"),
    ("POST", "/api/core/users/{userId}/ban"),
    ("POST", "/api/core/users/{userId}/unban"),
    ("DELETE", "/api/core/users/{userId}/factors"),
    ("GET", "/api/v1/audit/export"),
    ("GET", "/api/v1/audit/verify"),
    ("GET", "/api/v1/audit/checkpoints"),
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/platforms/{platformId}/logs"),
    // webhooks
    ("GET", "/api/v1/platforms/{platformId}/webhooks"),
    ("POST", "/api/v1/platforms/{platformId}/webhooks"),
    ("GET", "/api/v1/platforms/{platformId}/webhooks/{webhookId}"),
    (
        "PATCH",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}",
    ),
    (
        "DELETE",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}/rotate-secret",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}/test",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}/recover",
    ),
    (
        "GET",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}/deliveries",
    ),
    (
        "GET",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}/deliveries/{deliveryId}",
    ),
    (
        "POST",
        "/api/v1/platforms/{platformId}/webhooks/{webhookId}/deliveries/{deliveryId}/replay",
    ),
    ("GET", "/api/v1/webhooks"),
    ("POST", "/api/v1/webhooks"),
    ("GET", "/api/v1/webhooks/{webhookId}"),
    ("PATCH", "/api/v1/webhooks/{webhookId}"),
    ("DELETE", "/api/v1/webhooks/{webhookId}"),
    ("POST", "/api/v1/webhooks/{webhookId}/rotate-secret"),
    ("POST", "/api/v1/webhooks/{webhookId}/test"),
    ("POST", "/api/v1/webhooks/{webhookId}/recover"),
    ("GET", "/api/v1/webhooks/{webhookId}/deliveries"),
    (
        "GET",
        "/api/v1/webhooks/{webhookId}/deliveries/{deliveryId}",
    ),
    (
        "POST",
        "/api/v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay",
    ),
    // additional routes for operators of jobs
    ("GET", "/api/v1/provision/jobs/{jobId}/events"),
    ("GET", "/api/v1/provision/dlq/{entryId}"),
    ("GET", "/api/v1/provision/holds"),
    ("POST", "/api/v1/provision/holds"),
    ("GET", "/api/v1/provision/holds/{holdId}"),
    ("DELETE", "/api/v1/provision/holds/{holdId}"),
    // HTML pages
    ("GET", "/"),
    ("GET", "/assets/iam.css"),
    ("GET", "/assets/passkeys.js"),
    ("POST", "/account/rename-passkey"),
    ("POST", "/account/remove-passkey"),
    ("GET", "/sign-in"),
    ("POST", "/sign-in"),
    ("GET", "/two-factor"),
    ("POST", "/two-factor"),
    ("POST", "/sign-out"),
    ("GET", "/sign-up"),
    ("POST", "/sign-up"),
    ("GET", "/sign-up/sent"),
    ("GET", "/magic-link"),
    ("POST", "/magic-link"),
    ("GET", "/magic-link/sent"),
    ("POST", "/magic-link/sign-in"),
    ("GET", "/reset-password"),
    ("POST", "/reset-password"),
    ("GET", "/reset-password/sent"),
    ("POST", "/reset-password/new"),
    ("GET", "/verify-email"),
    ("POST", "/verify-email"),
    ("POST", "/verify-email/take-over"),
    ("POST", "/verify-email/delete"),
    ("GET", "/verify-email/deleted"),
    ("GET", "/accept-invitation"),
    ("POST", "/accept-invitation"),
    ("POST", "/accept-invitation/confirm"),
    ("GET", "/device"),
    ("POST", "/device"),
    ("GET", "/device/approved"),
    ("GET", "/device/denied"),
    ("GET", "/account"),
    ("POST", "/account/confirm-address"),
    ("POST", "/account/revoke-session"),
    ("POST", "/account/revoke-other-sessions"),
    ("GET", "/account/security"),
    ("POST", "/account/security"),
    ("GET", "/account/confirm"),
    ("POST", "/account/confirm"),
    ("GET", "/account/api-keys"),
    ("POST", "/account/api-keys"),
    ("POST", "/account/api-keys/delete"),
    // provisioning
    ("POST", "/api/v1/provision/platform/reconcile"),
    // billing
    ("POST", "/internal/usage/events"),
    ("POST", "/webhooks/stripe"),
    ("GET", "/assets/billing.css"),
    ("GET", "/pay/{token}"),
    ("POST", "/pay/{token}"),
    ("GET", "/portal"),
    ("GET", "/portal/{token}"),
    ("POST", "/portal/forms"),
];

/// The routes of onboarding. The interface specifies only their prefix.
const ONBOARDING: [(&str, &str); 3] = [
    ("POST", "/start"),
    ("GET", "/status/{onboardingId}"),
    ("GET", "/slug/{slug}"),
];

fn onboarding() -> impl Iterator<Item = Value> {
    ONBOARDING.into_iter().map(|(method, rest)| {
        let prefix = "/api/v1/onboarding";
        let path = format!("{prefix}{rest}");
        json!({
            "id": format!("onboarding{rest}"),
            "service": "registry",
            "method": method,
            "path": path,
            "aliases": [],
            "gateway_path": {
                "literal": format!("{prefix}{path}"),
                "natural": path,
                "reaches_natural_as": rest,
            },
        })
    })
}

/// Returns whether a path matches a documented route that ends with `*`. The interface does not specify the part that
/// replaces the `*`.
fn is_below_wildcard(endpoint: &Value, path: &str) -> bool {
    let prefix = text(endpoint, "path").strip_suffix('*');
    prefix.is_some_and(|prefix| path.starts_with(prefix))
}

/// Returns a path without the names of its parameters, because the interface does not name all of them.
fn strip_parameter_names(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|s| if s.starts_with('{') { "{}" } else { s });
    segments.collect::<Vec<_>>().join("/")
}

/// Paths that standards define: the metadata of RFC 8414, and the keys of RFC 7517.
const WELL_KNOWN: [&str; 2] = [
    "/.well-known/oauth-authorization-server",
    "/.well-known/jwks.json",
];

fn well_known() -> impl Iterator<Item = Value> {
    WELL_KNOWN.into_iter().map(|path| {
        json!({
            "id": path,
            "service": "iam",
            "method": "GET",
            "path": path,
            "aliases": [],
            "gateway_path": {
                "literal": format!("/api/v1/iam{path}"),
                "natural": format!("/api/v1/iam{path}"),
                "reaches_natural_as": path,
            },
        })
    })
}

fn documented_endpoints(service: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(ENDPOINTS).unwrap();
    let of_service: Vec<Value> = all
        .into_iter()
        .chain(onboarding())
        .chain(well_known())
        .filter(|e| e["service"] == service)
        .collect();
    assert!(!of_service.is_empty(), "{service} is documented");
    of_service
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Returns a path that a client could request: the parameters and the `*` are replaced by values.
fn concrete_path(pattern: &str) -> String {
    let segments = pattern.split('/').map(|segment| match segment {
        "*" => "some/thing",
        s if s.starts_with('{') => "x1",
        s => s,
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Returns every path at which the endpoint must be found, with the prefix that a gateway has removed.
fn spellings(endpoint: &Value) -> Vec<(String, Option<String>)> {
    let path = text(endpoint, "path");
    let mut spellings = vec![(concrete_path(path), None)];
    for alias in endpoint["aliases"].as_array().into_iter().flatten() {
        spellings.push((concrete_path(alias.as_str().unwrap()), None));
    }
    let gateway = &endpoint["gateway_path"];
    if let Some(prefix) = text(gateway, "literal").strip_suffix(path) {
        spellings.push((concrete_path(path), Some(prefix.to_owned())));
    }
    let (natural, rest) = (
        text(gateway, "natural"),
        text(gateway, "reaches_natural_as"),
    );
    // If two services share a prefix, `reaches_natural_as` is a note in words instead of a path.
    if rest.starts_with('/') && !rest.contains(' ') {
        let prefix = natural.strip_suffix(rest).unwrap_or(natural);
        spellings.push((concrete_path(rest), None));
        spellings.push((concrete_path(rest), Some(prefix.to_owned())));
    }
    spellings
}

#[test]
fn line_39_every_spelling_of_a_documented_route_reaches_the_same_endpoint() {
    for (name, service) in services(&World::new()) {
        for endpoint in documented_endpoints(name) {
            if endpoint["wildcard"] == true {
                let mut rows = service.endpoints().iter();
                let answered = rows.any(|row| is_below_wildcard(&endpoint, row.path()));
                assert!(answered, "{endpoint}");
                continue;
            }
            let method: Method = text(&endpoint, "method").parse().unwrap();
            let own = service.find(&method, &concrete_path(text(&endpoint, "path")), None);
            let own = own.map(|row| row.operation());
            assert!(own.is_some(), "{endpoint}");
            for (path, prefix) in spellings(&endpoint) {
                let found = service.find(&method, &path, prefix.as_deref());
                let found = found.map(|row| row.operation());
                assert_eq!(found, own, "{name} {method} {path} below {prefix:?}");
            }
        }
    }
}

#[test]
fn no_service_has_a_route_that_is_not_documented() {
    for (name, service) in services(&World::new()) {
        let documented = documented_endpoints(name);
        for row in service.endpoints() {
            let known = documented.iter().any(|endpoint| {
                let method = text(endpoint, "method") == row.method().as_str();
                let path = strip_parameter_names(text(endpoint, "path"))
                    == strip_parameter_names(row.path());
                method && path || is_below_wildcard(endpoint, row.path())
            });
            let known = known || EXTENSIONS.contains(&(row.method().as_str(), row.path()));
            assert!(known, "{} {}", row.method(), row.path());
        }
    }
}
