//! Who calls a service: by what a gateway in the same process says, or by the service key.

use async_trait::async_trait;
use core_domain::kernel::{
    Caller, Membership, OrganizationId, PlatformId, Result, Role, TextValue, UserId,
};
use http::header;
use http::request::Parts;

use super::{App, header_names};

/// What a caller is named whom nobody asked for a credential, because no service key is configured.
pub(crate) const UNAUTHENTICATED: &str = "unauthenticated";

/// Finds out who calls. IAM has its own, for sessions; everybody else uses [`ServiceKeyOnly`].
#[async_trait]
pub trait Identify: Send + Sync + std::fmt::Debug {
    /// The caller behind the request.
    ///
    /// # Errors
    /// `UNAUTHORIZED` for a credential that is not valid; anything else when it could not be looked up.
    async fn identify(&self, app: &App, request: &Parts) -> Result<Caller>;
}

/// Callers are known by the gateway's word or by the service key; everybody else is anonymous.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceKeyOnly;

#[async_trait]
impl Identify for ServiceKeyOnly {
    async fn identify(&self, app: &App, request: &Parts) -> Result<Caller> {
        Ok(known_caller(app, request).unwrap_or_else(|| unknown_caller(app)))
    }
}

/// The caller, when a gateway in this process has identified them or the request bears the service key.
#[must_use]
pub fn known_caller(app: &App, request: &Parts) -> Option<Caller> {
    if let Some(caller) = request.extensions.get::<Caller>() {
        return Some(caller.clone());
    }
    holds_service_key(app, request).then(|| on_behalf_of(request))
}

/// Whether the request bears the service key, so that what it says about others can be believed.
pub(super) fn holds_service_key(app: &App, request: &Parts) -> bool {
    let key = app.service_key.as_ref();
    let presented = bearer(request).zip(key);
    presented.is_some_and(|(presented, key)| key.is(presented))
}

/// The caller when nothing is known of them: nobody; without a service key anybody is let in (local development).
#[must_use]
pub fn unknown_caller(app: &App) -> Caller {
    if app.service_key.is_some() {
        return Caller::Anonymous;
    }
    Caller::Service {
        name: UNAUTHENTICATED.to_owned(),
    }
}

/// Tells whether a gateway let the caller in without asking for a credential: on a public route, or without a service
/// key. Who can tell by himself who it is may then do so.
pub(crate) fn was_not_asked(caller: &Caller) -> bool {
    match caller {
        Caller::Anonymous => true,
        Caller::Service { name } => name == UNAUTHENTICATED,
        _ => false,
    }
}

fn bearer(request: &Parts) -> Option<&str> {
    let value = request.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whoever holds the service key may say for whom they call. Who says it unclearly speaks for nobody: taken for the
/// service itself, the request would be allowed everything.
fn on_behalf_of(request: &Parts) -> Caller {
    let text = |name: &str| request.headers.get(name).and_then(|v| v.to_str().ok());
    let mut users = request.headers.get_all(header_names::USER_ID).iter();
    let (user, second) = (users.next(), users.next());
    let Some(user) = user else {
        return Caller::Service {
            name: "service-key".to_owned(),
        };
    };
    let user = user.to_str().ok().and_then(UserId::parse);
    let Some(user_id) = user.filter(|_| second.is_none()) else {
        return Caller::Anonymous;
    };
    let role = text(header_names::ROLE).and_then(Role::from_text);
    let platform_id = text(header_names::PLATFORM_ID).and_then(PlatformId::parse);
    let organization_id = text(header_names::ORGANIZATION_ID)
        .or_else(|| platform_id.as_ref().map(PlatformId::as_str))
        .and_then(OrganizationId::parse);
    let membership = role
        .zip(organization_id)
        .map(|(role, organization_id)| Membership {
            organization_id,
            platform_id,
            role,
            permissions: role.permissions(),
            operates: text(header_names::OPERATOR) == Some("true"),
        });
    Caller::User {
        user_id,
        session_id: None,
        membership,
    }
}
