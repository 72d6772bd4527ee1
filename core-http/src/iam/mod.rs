//! IAM over HTTP: better-auth's routes for people and browsers, and the suite's own.

mod api_keys;
mod authority;
mod config;
mod cookies;
mod core_session;
mod failed_sign_ins;
mod grants;
mod health;
mod identify;
mod organization;
mod own_sessions;
mod roles;
mod session;
mod user;

use std::sync::Arc;

pub use authority::SessionAuthority;
pub use config::IamConfig;

use crate::kernel::{App, Endpoint, Service, ServiceError, tagged};
use crate::platform_status;
use api_keys::KeyLimits;
use config::Iam;
use identify::{AUTH_ROUTES, IdentifySessions};

/// The IAM service.
///
/// # Errors
/// [`ServiceError`] says which row of the table is wrong.
pub fn service(app: Arc<App>, config: &IamConfig) -> Result<Service, ServiceError> {
    let iam = Arc::new(Iam::new(config, &app.options.rates));
    let limits = Arc::new(KeyLimits::of(&app));
    let identify = IdentifySessions {
        iam: Arc::clone(&iam),
        limits: Arc::clone(&limits),
    };
    Service::builder("iam", app, endpoints(&iam, &limits))
        .identify(Arc::new(identify))
        .behind(config.trusted_proxies.clone())
        .allowed_origins(iam.trusted_origins().to_vec())
        .session_cookie(iam.names.session())
        .better_auth_errors_below(AUTH_ROUTES)
        .build()
}

fn endpoints(iam: &Arc<Iam>, limits: &Arc<KeyLimits>) -> Vec<Endpoint> {
    let suspension = platform_status::row("setPlatformStatus");
    let parts = [
        tagged("Authentication", user::rows(iam)),
        tagged("Authentication", session::rows(iam)),
        tagged("Sessions", core_session::rows(iam)),
        tagged("Sessions", own_sessions::rows()),
        tagged("Organizations", organization::rows(iam)),
        tagged("Roles and grants", roles::rows()),
        tagged("Roles and grants", grants::rows()),
        tagged("API keys", api_keys::rows(limits)),
        tagged("Suspension", vec![suspension]),
        tagged("Health", health::rows()),
    ];
    parts.into_iter().flatten().collect()
}
