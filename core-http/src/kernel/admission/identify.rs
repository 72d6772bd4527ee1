//! Authentication at a service: by a gateway in the same process, by the service key, or by a service token.
//!
//! [`check_service_key`] compares the credentials of a request once and attaches the result to it. The other functions
//! use that result.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::iam::{ServiceClaims, UnverifiedToken};
use core_domain::kernel::{
    ApiKeyId, Caller, Error, OrganizationId, PlatformId, Result, SessionId, TextValue, UserId,
};
use core_domain::port::Mode;
use core_domain::use_case::iam::service_token::verify;
use core_domain::use_case::iam::{NamedOrganization, named_api_key, named_person, named_session};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::kernel::App;
use crate::kernel::request::header_names;

/// The name of callers without a credential if no service key is configured.
pub(crate) const UNAUTHENTICATED: &str = "unauthenticated";

/// The name of callers with the service key.
const SERVICE_KEY_HOLDER: &str = "service-key";

/// Authenticates the callers of a service. IAM has an implementation for sessions; the other services use
/// [`ServiceKeyOnly`].
#[async_trait]
pub trait Identify: Send + Sync + std::fmt::Debug {
    /// Returns the caller of a request. An implementation can attach the records that it has read to the extensions of
    /// the request, which handlers see as [`Cx::extensions`](crate::kernel::Cx::extensions).
    ///
    /// # Errors
    /// - `UNAUTHORIZED` if a credential is invalid.
    /// - Any other error if the credential cannot be looked up.
    async fn identify(&self, app: &App, request: &mut Parts) -> Result<Arc<Caller>>;

    /// Adds headers to a 401 response that delete the cookies of an ended session. `cookies` are the `Cookie` lines of
    /// the request. The default adds nothing.
    fn clear_cookies(&self, cookies: &[HeaderValue], answer: &mut HeaderMap) {
        let _ = (cookies, answer);
    }
}

/// Accepts the caller set by a gateway in the same process, the service key, and service tokens for this service. All
/// other callers are those of [`default_caller`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceKeyOnly;

#[async_trait]
impl Identify for ServiceKeyOnly {
    async fn identify(&self, app: &App, request: &mut Parts) -> Result<Arc<Caller>> {
        let known = known_caller(app, request).await?;
        Ok(known.unwrap_or_else(|| default_caller(app)))
    }
}

/// Returns the caller if a gateway in this process has authenticated them, or if the request has the service key or a
/// service token as its bearer token.
///
/// # Errors
/// Only those of the store.
pub async fn known_caller(app: &App, request: &Parts) -> Result<Option<Arc<Caller>>> {
    if let Some(caller) = request.extensions.get::<Arc<Caller>>() {
        return Ok(Some(Arc::clone(caller)));
    }
    let Some(holder) = KeyCheck::of(app, request).in_bearer else {
        return Ok(None);
    };
    // Boxed, so that it does not enlarge the futures of all other requests.
    let caller = Box::pin(on_behalf_of(app, &request.headers, holder)).await?;
    Ok(Some(Arc::new(caller)))
}

/// A service that has authenticated itself by the service key or a service token.
#[derive(Clone, Debug)]
struct Holder {
    /// The name of the service.
    service: &'static str,
    /// The session of the person for whom the service calls, as named by its token.
    session: Option<SessionId>,
}

impl From<ServiceClaims> for Holder {
    fn from(claims: ServiceClaims) -> Self {
        Self {
            service: claims.sub.as_str(),
            session: claims.sid,
        }
    }
}

/// The services that a request is from, by the two places of their credential. Hashing a credential is expensive, so
/// the result is computed once and stored in the extensions of the request.
#[derive(Clone, Debug, Default)]
struct KeyCheck {
    /// The service whose credential is the bearer token.
    in_bearer: Option<Holder>,
    /// The service whose credential is in `X-Core-Service-Key`.
    in_hop_header: Option<Holder>,
}

impl KeyCheck {
    /// Returns the stored result, or compares the service key now.
    fn of(app: &App, request: &Parts) -> Self {
        let known = request.extensions.get::<Self>().cloned();
        known.unwrap_or_else(|| Self::of_key(app, request))
    }

    /// Compares the service key with both places. Service tokens are not checked.
    fn of_key(app: &App, request: &Parts) -> Self {
        let Some(key) = &app.service_key else {
            return Self::default();
        };
        let holder = |presented: Option<&str>| {
            let held = presented.is_some_and(|presented| key.is(presented));
            held.then_some(Holder {
                service: SERVICE_KEY_HOLDER,
                session: None,
            })
        };
        Self {
            in_bearer: holder(bearer(&request.headers)),
            in_hop_header: holder(hop_key(&request.headers)),
        }
    }

    /// Like [`Self::of_key`], and verifies service tokens for the service of this name.
    async fn of_any(app: &App, audience: &str, request: &Parts) -> Self {
        let mut found = Self::of_key(app, request);
        let headers = &request.headers;
        for (holder, presented) in [
            (&mut found.in_bearer, bearer(headers)),
            (&mut found.in_hop_header, hop_key(headers)),
        ] {
            if let (None, Some(presented)) = (&holder, presented)
                && could_be(presented)
            {
                // Boxed, so that it does not enlarge the futures of all other requests.
                let claims = Box::pin(claims_of(app, audience, presented)).await;
                *holder = claims.map(Holder::from);
            }
        }
        found
    }
}

/// Checks whether the request has the service key, or a service token for the service of this name, and stores the
/// result in its extensions. The result of another service is replaced.
pub(crate) async fn check_service_key(app: &App, service: &str, request: &mut Parts) {
    let found = KeyCheck::of_any(app, service, request).await;
    request.extensions.insert(found);
}

/// Returns whether a service sent the request, so that its forwarding headers are trusted. Its service key or service
/// token is the bearer token, or is in `X-Core-Service-Key` if the bearer token is the client's.
pub(crate) fn is_trusted_hop(app: &App, request: &Parts) -> bool {
    let found = KeyCheck::of(app, request);
    found.in_hop_header.or(found.in_bearer).is_some()
}

/// Returns the service key or service token in `X-Core-Service-Key`.
pub(crate) fn hop_key(headers: &HeaderMap) -> Option<&str> {
    headers.get(&header_names::SERVICE_KEY)?.to_str().ok()
}

/// Returns the caller of a request without a credential: anonymous. If no service key is configured, it is the service
/// `unauthenticated`, which has all permissions, for local development.
#[must_use]
pub fn default_caller(app: &App) -> Arc<Caller> {
    if app.service_key.is_some() {
        return Arc::new(Caller::Anonymous);
    }
    Arc::new(Caller::Service {
        name: UNAUTHENTICATED.to_owned(),
    })
}

/// Returns whether a gateway has not authenticated the caller, because the route is public or no service key is
/// configured. A service that can validate credentials then does so itself.
pub(crate) fn is_unauthenticated(caller: &Caller) -> bool {
    match caller {
        Caller::Anonymous => true,
        Caller::Service { name } => name == UNAUTHENTICATED,
        _ => false,
    }
}

/// Returns the API key of a request. `None` if the header is missing, or occurs more than once and is ambiguous.
pub(crate) fn presented_api_key(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(&header_names::API_KEY).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok(),
        _ => None,
    }
}

/// Returns the token of `Authorization: Bearer`. The scheme is not case-sensitive.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the caller for whom a service calls: the person or API key that the headers name, or the service itself if
/// they name none. Roles and permissions are read from the store. An unknown or ambiguous identity is anonymous;
/// treated as the service itself, it would have all permissions.
async fn on_behalf_of(app: &App, headers: &HeaderMap, holder: Holder) -> Result<Caller> {
    let (Ok(user_id), Ok(key_id)) = (
        sole::<UserId>(headers, &header_names::USER_ID),
        sole::<ApiKeyId>(headers, &header_names::API_KEY_ID),
    ) else {
        return Ok(Caller::Anonymous);
    };
    let Holder { service, session } = holder;
    if user_id.is_none() && key_id.is_none() && session.is_none() {
        return Ok(Caller::Service {
            name: service.to_owned(),
        });
    }
    let mut uow = app.store.begin(Mode::Auto).await?;
    let caller = match (user_id, key_id, session) {
        (user_id, Some(key_id), None) => {
            named_api_key(uow.as_mut(), &key_id, user_id.as_ref()).await
        }
        (Some(user_id), None, Some(session)) => {
            named_session(uow.as_mut(), &session, &user_id).await
        }
        (Some(user_id), None, None) => {
            let organization = named_organization(headers);
            named_person(uow.as_mut(), service, user_id, organization.as_ref()).await
        }
        // A token for a session is valid only with the user of that session.
        _ => Ok(Caller::Anonymous),
    };
    uow.rollback().await;
    caller
}

/// Returns the organization that the headers name, by its id or by its platform.
fn named_organization(headers: &HeaderMap) -> Option<NamedOrganization> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let id = text(&header_names::ORGANIZATION_ID).and_then(OrganizationId::parse);
    let platform = || text(&header_names::PLATFORM_ID).and_then(PlatformId::parse);
    id.map(NamedOrganization::Id)
        .or_else(|| platform().map(NamedOrganization::OfPlatform))
}

/// Returns the value of a header that may occur at most once; `None` if it is missing.
///
/// # Errors
/// `UNAUTHORIZED` if the header occurs more than once or is malformed.
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

/// Returns whether a text has the form of a service token. Otherwise the store need not be read.
pub(crate) fn could_be(presented: &str) -> bool {
    UnverifiedToken::parse(presented).is_ok()
}

/// Returns the claims of a valid token for the service of this name. `None` for any other text, and if the token cannot
/// be verified because the store fails.
pub(crate) async fn claims_of(app: &App, audience: &str, presented: &str) -> Option<ServiceClaims> {
    match verified(app, audience, presented).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::warn!(?error, "a service token could not be verified");
            None
        }
    }
}

/// Verifies a token with the keys in the store; `None` if it is invalid.
async fn verified(app: &App, audience: &str, token: &str) -> Result<Option<ServiceClaims>> {
    let mut uow = app.store.begin(Mode::Auto).await?;
    let claims = verify(uow.as_mut(), token, &app.issuer, audience).await;
    uow.rollback().await;
    claims
}
