//! Authentication at a service: by a gateway in the same process, or by the service key.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{
    ApiKeyId, Caller, Error, Membership, OrganizationId, PermissionSet, PlatformId, Result, Roles,
    TextValue, UserId,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, header};

use super::{App, header_names};

/// The name of a caller who was not asked for a credential because no service key is configured.
pub(crate) const UNAUTHENTICATED: &str = "unauthenticated";

/// The name of whoever holds the service key.
const SERVICE_KEY_HOLDER: &str = "service-key";

/// Authenticates the caller of a service. IAM has its own, for sessions; the other services use [`ServiceKeyOnly`].
#[async_trait]
pub trait Identify: Send + Sync + std::fmt::Debug {
    /// The caller behind the request. What was read to find out can be left in the extensions of the request, which
    /// handlers see as [`Cx::extensions`](super::Cx::extensions).
    ///
    /// # Errors
    /// `UNAUTHORIZED` for a credential that is not valid; anything else when it could not be looked up.
    async fn identify(&self, app: &App, request: &mut Parts) -> Result<Arc<Caller>>;
}

/// Accepts the caller set by a gateway in the same process, or the service key; all others are anonymous.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceKeyOnly;

#[async_trait]
impl Identify for ServiceKeyOnly {
    async fn identify(&self, app: &App, request: &mut Parts) -> Result<Arc<Caller>> {
        Ok(known_caller(app, request).unwrap_or_else(|| default_caller(app)))
    }
}

/// The caller, when a gateway in this process has identified them or the request bears the service key.
#[must_use]
pub fn known_caller(app: &App, request: &Parts) -> Option<Arc<Caller>> {
    if let Some(caller) = request.extensions.get::<Arc<Caller>>() {
        return Some(Arc::clone(caller));
    }
    bears_service_key(app, request).then(|| Arc::new(on_behalf_of(&request.headers)))
}

/// Where a request has the service key. Hashing a credential costs more than anything else that is asked of it, so this is
/// found out once and kept in the extensions of the request.
#[derive(Clone, Copy, Debug, Default)]
struct KeyCheck {
    /// As its credential.
    in_bearer: bool,
    /// In `X-Core-Service-Key`.
    in_hop_header: bool,
}

impl KeyCheck {
    /// What was found out, or is now.
    fn of(app: &App, request: &Parts) -> Self {
        let known = request.extensions.get::<Self>().copied();
        known.unwrap_or_else(|| Self::compute(app, request))
    }

    fn compute(app: &App, request: &Parts) -> Self {
        let Some(key) = &app.service_key else {
            return Self::default();
        };
        Self {
            in_bearer: bearer(&request.headers).is_some_and(|presented| key.is(presented)),
            in_hop_header: hop_key(&request.headers).is_some_and(|presented| key.is(presented)),
        }
    }
}

/// Finds out once whether the request has the service key. What another service found out of it is replaced.
pub(super) fn check_service_key(app: &App, request: &mut Parts) {
    let found = KeyCheck::compute(app, request);
    request.extensions.insert(found);
}

/// Whether the service key is the credential of the request: it is made by a service, or on behalf of the user it names.
fn bears_service_key(app: &App, request: &Parts) -> bool {
    KeyCheck::of(app, request).in_bearer
}

/// Whether a holder of the service key sent the request, so that its forwarding headers are trusted. The key is the credential
/// of the request, or is in `X-Core-Service-Key`, where a gateway sends it with requests that have the client's credential.
pub(super) fn is_trusted_hop(app: &App, request: &Parts) -> bool {
    let found = KeyCheck::of(app, request);
    found.in_hop_header || found.in_bearer
}

/// The key with which a gateway vouches for the request.
pub(super) fn hop_key(headers: &HeaderMap) -> Option<&str> {
    headers.get(&header_names::SERVICE_KEY)?.to_str().ok()
}

/// The caller of a request without a credential: anonymous; without a configured service key, the service
/// `unauthenticated`, which may do everything (local development).
#[must_use]
pub fn default_caller(app: &App) -> Arc<Caller> {
    if app.service_key.is_some() {
        return Arc::new(Caller::Anonymous);
    }
    Arc::new(Caller::Service {
        name: UNAUTHENTICATED.to_owned(),
    })
}

/// Tells whether a gateway did not authenticate the caller: on a public route, or without a service key. A service that
/// validates credentials itself then does so.
pub(crate) fn is_unauthenticated(caller: &Caller) -> bool {
    match caller {
        Caller::Anonymous => true,
        Caller::Service { name } => name == UNAUTHENTICATED,
        _ => false,
    }
}

/// The API key of a request; none when it is there twice, which is ambiguous.
pub(crate) fn presented_api_key(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(&header_names::API_KEY).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok(),
        _ => None,
    }
}

/// The token of the request's `Authorization: Bearer`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A holder of the service key may act for a user. An ambiguous identity is anonymous: taken for the service itself, the
/// request would be allowed everything.
fn on_behalf_of(headers: &HeaderMap) -> Caller {
    let text = |name: &HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    let (Ok(user_id), Ok(key_id)) = (
        sole::<UserId>(headers, &header_names::USER_ID),
        sole::<ApiKeyId>(headers, &header_names::API_KEY_ID),
    ) else {
        return Caller::Anonymous;
    };
    let role = text(&header_names::ROLE).and_then(Roles::from_text);
    let permissions = text(&header_names::PERMISSIONS)
        .map(|patterns| PermissionSet::new(patterns.split(',').filter(|p| !p.is_empty())));
    let platform_id = text(&header_names::PLATFORM_ID).and_then(PlatformId::parse);
    let organization_id = text(&header_names::ORGANIZATION_ID)
        .or_else(|| platform_id.as_ref().map(PlatformId::as_str))
        .and_then(OrganizationId::parse);
    let membership = role
        .zip(organization_id)
        .map(|(role, organization_id)| Membership {
            organization_id,
            platform_id,
            permissions: permissions.unwrap_or_else(|| role.permissions()),
            role,
            operates: text(&header_names::OPERATOR) == Some("true"),
        });
    match (user_id, key_id, membership) {
        (None, None, _) => Caller::Service {
            name: SERVICE_KEY_HOLDER.to_owned(),
        },
        (Some(user_id), None, membership) => Caller::User {
            user_id,
            session_id: None,
            service: Some(SERVICE_KEY_HOLDER.to_owned()),
            membership,
        },
        (user_id, Some(key_id), Some(membership)) => Caller::ApiKey {
            key_id,
            user_id,
            membership: Membership {
                operates: false,
                ..membership
            },
        },
        // A key always acts for an organization.
        (_, Some(_), None) => Caller::Anonymous,
    }
}

/// What a header says that is there once at most.
fn sole<T: TextValue>(headers: &HeaderMap, name: &HeaderName) -> Result<Option<T>> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => {
            let read = line.to_str().ok().and_then(T::from_text);
            read.map(Some).ok_or(Error::Unauthorized)
        }
        (Some(_), Some(_)) => Err(Error::Unauthorized),
    }
}
