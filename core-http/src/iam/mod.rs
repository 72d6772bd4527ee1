//! IAM over HTTP: better-auth's routes for people and browsers, and the suite's own.

mod authority;
mod bootstrap;
mod config;
mod cookies;
mod core_session;
mod email;
mod guesses;
mod health;
mod identify;
mod org_setup;
mod session;
mod sessions;
#[cfg(test)]
mod tests;
mod wire;
mod with_iam;

use std::sync::Arc;

use core_domain::kernel::Code;
use http::StatusCode;

pub use authority::SessionAuthority;
pub use config::IamConfig;

use crate::kernel::{Access, App, Endpoint, ErrorStyle, Service, ServiceError, delete, get, post};
use crate::platform_status;
use config::Iam;
use identify::IdentifySessions;
use with_iam::WithIam;

/// What the paths of the authentication library begin with.
const AUTH_ROUTES: &str = "/api/auth/";

/// The IAM service.
///
/// # Errors
/// [`ServiceError`] says which row of the table is wrong.
pub fn service(app: Arc<App>, config: &IamConfig) -> Result<Service, ServiceError> {
    let iam = Arc::new(Iam::new(config));
    let identify = IdentifySessions(Arc::clone(&iam));
    Service::builder("iam", app, endpoints(&iam))
        .identify(Arc::new(identify))
        .behind(config.trusted_proxies.clone())
        .open_to_pages_of(iam.trusted_origins().to_vec())
        .better_auth_errors_below(AUTH_ROUTES)
        .build()
}

fn endpoints(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let mut rows = auth_endpoints(iam);
    rows.extend(core_endpoints(iam));
    rows
}

/// The routes of the authentication library.
fn auth_endpoints(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/sign-up/email", "signUpEmail")
            .summary("Signs somebody up with an address and a password, and in.")
            .access(Access::Public)
            .errors(ErrorStyle::TopLevelCode)
            .takes_forms()
            .refuses(&[
                Code::UserAlreadyExists,
                Code::PasswordTooShort,
                Code::PasswordTooLong,
                Code::PasswordTooCommon,
                Code::ServiceUnavailable,
                Code::InvalidOrigin,
                Code::InvalidCallbackUrl,
            ])
            .plain(WithIam::new(iam, email::sign_up)),
        post("/api/auth/sign-in/email", "signInEmail")
            .summary("Signs somebody in with an address and a password.")
            .access(Access::Public)
            .errors(ErrorStyle::TopLevelCode)
            .takes_forms()
            .refuses(&[
                Code::InvalidEmailOrPassword,
                Code::InvalidEmail,
                Code::RateLimited,
                Code::ServiceUnavailable,
                Code::InvalidOrigin,
                Code::InvalidCallbackUrl,
            ])
            .plain(WithIam::new(iam, email::sign_in)),
        post("/api/auth/sign-out", "signOut")
            .summary("Ends the session of the request, if it has one.")
            .access(Access::Public)
            .errors(ErrorStyle::TopLevelCode)
            .plain(WithIam::new(iam, session::sign_out)),
        get("/api/auth/get-session", "getSession")
            .summary("The session of the request and its user; null without one.")
            .access(Access::Public)
            .errors(ErrorStyle::TopLevelCode)
            .plain(WithIam::new(iam, session::get_session)),
    ]
}

/// The suite's own routes.
fn core_endpoints(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        get("/health", "health")
            .summary("How the service is.")
            .access(Access::Public)
            .plain(health::health),
        get("/api/core/session", "getCoreSession")
            .summary("The session of the request with organization, tenant, role and permissions.")
            .plain(WithIam::new(iam, core_session::core_session)),
        post("/api/validate-session", "validateSession")
            .summary("For services: what is behind a session token.")
            .access(Access::Service)
            .reads(WithIam::new(iam, core_session::validate_session)),
        get("/api/sessions", "listSessions")
            .summary("The caller's sessions, newest first.")
            .reads(sessions::list),
        delete("/api/sessions/{id}", "revokeSession")
            .summary("Ends one of the caller's sessions.")
            .writes(sessions::revoke),
        post("/api/core/org-setup", "orgSetup")
            .summary("Sets up an organization with its platform; by session cookie alone.")
            .access(Access::Session)
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::SlugTaken])
            .writes(WithIam::new(iam, org_setup::org_setup)),
        post("/api/core/bootstrap", "bootstrap")
            .summary("Makes the operator organization; works once.")
            .access(Access::Service)
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::SlugTaken])
            .writes(bootstrap::bootstrap),
        post("/internal/platform-status", "setPlatformStatus")
            .summary("For services: sets or lifts the suspension of a platform.")
            .access(Access::Service)
            .writes(platform_status::set),
    ]
}
