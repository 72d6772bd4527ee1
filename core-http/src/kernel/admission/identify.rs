//! Authentication at a service: by a gateway in the same process, or by the service key.

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

    /// Takes away the cookies of a session that is gone, in the answer to a request with these that had to have one.
    fn clear_cookies(&self, cookies: &[HeaderValue], answer: &mut HeaderMap) {
        let _ = (cookies, answer);
    }
}

/// Accepts the caller set by a gateway in the same process, the service key, or a service token for this service; all others
/// are anonymous.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceKeyOnly;

#[async_trait]
impl Identify for ServiceKeyOnly {
    async fn identify(&self, app: &App, request: &mut Parts) -> Result<Arc<Caller>> {
        let known = known_caller(app, request).await?;
        Ok(known.unwrap_or_else(|| default_caller(app)))
    }
}

/// Returns the caller if a gateway in this process has identified them, or if the request bears the service key or a service
/// token.
///
/// # Errors
/// When the store failed.
pub async fn known_caller(app: &App, request: &Parts) -> Result<Option<Arc<Caller>>> {
    if let Some(caller) = request.extensions.get::<Arc<Caller>>() {
        return Ok(Some(Arc::clone(caller)));
    }
    let Some(holder) = KeyCheck::of(app, request).in_bearer else {
        return Ok(None);
    };
    // Boxed, so that the future of every other request is not larger for it.
    let caller = Box::pin(on_behalf_of(app, &request.headers, holder)).await?;
    Ok(Some(Arc::new(caller)))
}

/// A holder of the service key or of a service token.
#[derive(Clone, Debug)]
struct Holder {
    service: &'static str,
    /// The session of the person for whom the service calls, as its token claims.
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

/// Where a request has the service key or a service token, and which service it is then from. Hashing a credential costs more
/// than anything else that is asked of it, so this is found out once and kept in the extensions of the request.
#[derive(Clone, Debug, Default)]
struct KeyCheck {
    /// As its credential.
    in_bearer: Option<Holder>,
    /// In `X-Core-Service-Key`.
    in_hop_header: Option<Holder>,
}

impl KeyCheck {
    /// What was found out, or is now.
    fn of(app: &App, request: &Parts) -> Self {
        let known = request.extensions.get::<Self>().cloned();
        known.unwrap_or_else(|| Self::of_key(app, request))
    }

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

    /// As [`Self::of_key`], and with service tokens for the service of this name.
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
                // Boxed, so that the future of every other request is not larger for it.
                let claims = Box::pin(claims_of(app, audience, presented)).await;
                *holder = claims.map(Holder::from);
            }
        }
        found
    }
}

/// Finds out once whether the request has the service key, or a service token for the service of this name. What another
/// service found out of it is replaced.
pub(crate) async fn check_service_key(app: &App, service: &str, request: &mut Parts) {
    let found = KeyCheck::of_any(app, service, request).await;
    request.extensions.insert(found);
}

/// Whether a holder of the service key or of a service token sent the request, so that its forwarding headers are trusted. It is
/// the credential of the request, or is in `X-Core-Service-Key`, where a gateway sends it with requests that have the client's
/// credential.
pub(crate) fn is_trusted_hop(app: &App, request: &Parts) -> bool {
    let found = KeyCheck::of(app, request);
    found.in_hop_header.or(found.in_bearer).is_some()
}

/// The key with which a gateway vouches for the request.
pub(crate) fn hop_key(headers: &HeaderMap) -> Option<&str> {
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
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns the caller for whom a service acts. The headers name a person or an API key; everything else about them is read from
/// the store. An unknown or ambiguous identity is anonymous: taken for the service itself, the request would be allowed
/// everything.
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
        // The token is for a session, whose user the service must name.
        _ => Ok(Caller::Anonymous),
    };
    uow.rollback().await;
    caller
}

/// The organization that the headers name, by its id or by its platform.
fn named_organization(headers: &HeaderMap) -> Option<NamedOrganization> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let id = text(&header_names::ORGANIZATION_ID).and_then(OrganizationId::parse);
    let platform = || text(&header_names::PLATFORM_ID).and_then(PlatformId::parse);
    id.map(NamedOrganization::Id)
        .or_else(|| platform().map(NamedOrganization::OfPlatform))
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

/// Whether a text could be a service token; otherwise the store need not be asked.
pub(crate) fn could_be(presented: &str) -> bool {
    UnverifiedToken::parse(presented).is_ok()
}

/// The claims of a token for the service of this name; `None` for any other text, and while tokens cannot be checked.
pub(crate) async fn claims_of(app: &App, audience: &str, presented: &str) -> Option<ServiceClaims> {
    match verified(app, audience, presented).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::warn!(?error, "a service token could not be checked");
            None
        }
    }
}

async fn verified(app: &App, audience: &str, token: &str) -> Result<Option<ServiceClaims>> {
    let mut uow = app.store.begin(Mode::Auto).await?;
    let claims = verify(uow.as_mut(), token, &app.issuer, audience).await;
    uow.rollback().await;
    claims
}
