//! The HTTP interface of IAM: the routes of better-auth for people and browsers, and the suite's own routes.

mod account;
mod api_keys;
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
mod grants;
mod health;
mod identify;
mod invitations;
mod magic_link;
mod oauth;
mod options;
mod organization;
mod own_sessions;
mod pages;
mod passkey;
mod password;
mod roles;
mod service_token;
mod session;
mod status;
mod target;
mod two_factor;
mod user;
mod users;
mod whoami;
mod wrong_user_codes;

use std::sync::Arc;

pub use authority::SessionAuthority;
pub use config::IamConfig;
pub use options::IamOptions;

use super::kernel::admission::limiter::SharedLimiter;
use crate::kernel::{App, Endpoint, Service, ServiceBuilder, ServiceError, tagged};
use crate::platform_status;
use api_keys::KeyLimits;
use config::Iam;
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
    let builder = Service::builder("iam", app, endpoints(&iam, &limits))
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
        tagged("Authentication", user::rows(iam)),
        tagged("Authentication", session::rows(iam)),
        tagged("Authentication", magic_link::rows(iam)),
        tagged("Authentication", password::rows(iam)),
        tagged("Authentication", email_verification::rows(iam)),
        tagged("Second factor", two_factor::rows(iam)),
        tagged("Passkeys", passkey::rows(iam)),
        tagged("Profile", account::rows(iam)),
        tagged("Users", users::rows(iam)),
        tagged("Sessions", auth_sessions::rows(iam)),
        tagged("Sessions", core_session::rows(iam)),
        tagged("Sessions", own_sessions::rows()),
        tagged("OAuth", oauth::rows(iam)),
        tagged("OAuth", vec![whoami::row(iam)]),
        tagged("Service tokens", service_token::rows()),
        tagged("Organizations", organization::rows(iam)),
        tagged("Organizations", auth_organization::rows(iam)),
        tagged("Organizations", invitations::rows(iam)),
        tagged("Roles and grants", roles::rows()),
        tagged("Roles and grants", grants::rows()),
        tagged("API keys", api_keys::rows(limits)),
        tagged("Audit", audit::rows()),
        tagged("Suspension", vec![suspension]),
        tagged("Health", health::rows()),
        tagged("Pages", pages::rows(iam)),
    ];
    parts.into_iter().flatten().collect()
}
