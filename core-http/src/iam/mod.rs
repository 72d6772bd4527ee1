//! The HTTP interface of IAM: the routes of better-auth for people and browsers, and the suite's own routes.

mod account;
mod api_key;
mod attempt;
mod audit;
mod auth_organization;
mod auth_sessions;
mod authority;
mod bounds;
mod challenge;
mod config;
mod cookies;
mod core_session;
mod email_verification;
mod failed_sign_ins;
mod health;
mod identify;
mod invitation;
mod magic_link;
mod oauth;
mod options;
mod organization;
mod own_sessions;
mod pages;
mod passkey;
mod password;
mod permission_grant;
mod role_mapping;
mod service_token;
mod session;
mod sign_in;
mod status;
mod target;
mod two_factor;
mod user;
mod whoami;
mod wrong_user_codes;

use std::sync::Arc;

pub use authority::SessionAuthority;
pub use config::IamConfig;
pub use options::IamOptions;

use super::kernel::admission::limiter::SharedLimiter;
use crate::kernel::{App, Endpoint, Service, ServiceBuilder, ServiceError, with_tag};
use crate::platform_status;
use api_key::KeyLimits;
use config::Iam;
use core_domain::kernel::SuiteService;
use identify::{AUTH_ROUTES, IdentifySessions};
use pages::HtmlErrorPages;

/// Builds the IAM service.
///
/// # Errors
/// Returns a [`ServiceError`] that names the inconsistent row of the endpoint table.
pub fn service(app: Arc<App>, config: &IamConfig) -> Result<Service, ServiceError> {
    let iam = Arc::new(Iam::new(
        config,
        &app.options.rates,
        &Arc::new(SharedLimiter::of(&app)),
    ));
    let limits = Arc::new(KeyLimits::of(&app));
    let identify = IdentifySessions {
        iam: Arc::clone(&iam),
        limits: Arc::clone(&limits),
    };
    let builder = Service::builder(SuiteService::Iam.as_str(), app, endpoints(&iam, &limits))
        .identify(Arc::new(identify))
        .behind(config.trusted_proxies.clone())
        .allowed_origins(iam.trusted_origins().to_vec())
        .session_cookie(iam.names.session())
        .better_auth_errors_below(AUTH_ROUTES)
        .error_pages(Arc::new(HtmlErrorPages(Arc::clone(&iam))));
    describe(builder).build()
}

/// Adds the texts about the service to its OpenAPI document.
fn describe(builder: ServiceBuilder) -> ServiceBuilder {
    builder
        .purpose(
            "IAM manages users, sessions, organizations, roles and API keys. Its routes below \
             `/api/auth/` are compatible with the clients of better-auth.",
        )
        .tag(
            "Authentication",
            "Sign-up, sign-in, sign-out, passwords and e-mail verification.",
        )
        .tag("Second factor", "Authenticator apps and recovery codes.")
        .tag(
            "Passkeys",
            "Registration of passkeys, and sign-in with them.",
        )
        .tag("Profile", "The profile of the signed-in user.")
        .tag("Users", "Operations of operators on users.")
        .tag("Sessions", "Active sessions, and their revocation.")
        .tag("OAuth", "Sign-in of devices and programs by OAuth.")
        .tag(
            "Service tokens",
            "Tokens for calls between services, and their public keys.",
        )
        .tag(
            "Organizations",
            "Organizations, their members and invitations.",
        )
        .tag(
            "Roles and grants",
            "Permissions of roles and of single members.",
        )
        .tag("API keys", "API keys of users and organizations.")
        .tag("Audit", "Audit entries of IAM.")
        .tag("Suspension", "Suspension of platforms by other services.")
        .tag("Health", "The health of the service.")
        .tag("Pages", "HTML pages for browsers.")
}

fn endpoints(iam: &Arc<Iam>, limits: &Arc<KeyLimits>) -> Vec<Endpoint> {
    let suspension = platform_status::row("setPlatformStatus");
    let parts = [
        with_tag("Authentication", sign_in::rows(iam)),
        with_tag("Authentication", session::rows(iam)),
        with_tag("Authentication", magic_link::rows(iam)),
        with_tag("Authentication", password::rows(iam)),
        with_tag("Authentication", email_verification::rows(iam)),
        with_tag("Second factor", two_factor::rows(iam)),
        with_tag("Passkeys", passkey::rows(iam)),
        with_tag("Profile", account::rows(iam)),
        with_tag("Users", user::rows(iam)),
        with_tag("Sessions", auth_sessions::rows(iam)),
        with_tag("Sessions", core_session::rows(iam)),
        with_tag("Sessions", own_sessions::rows()),
        with_tag("OAuth", oauth::rows(iam)),
        with_tag("OAuth", vec![whoami::row(iam)]),
        with_tag("Service tokens", service_token::rows()),
        with_tag("Organizations", organization::rows(iam)),
        with_tag("Organizations", auth_organization::rows(iam)),
        with_tag("Organizations", invitation::rows(iam)),
        with_tag("Roles and grants", role_mapping::rows()),
        with_tag("Roles and grants", permission_grant::rows()),
        with_tag("API keys", api_key::rows(limits)),
        with_tag("Audit", audit::rows()),
        with_tag("Suspension", vec![suspension]),
        with_tag("Health", health::rows()),
        with_tag("Pages", pages::rows(iam)),
    ];
    parts.into_iter().flatten().collect()
}
