//! The credentials of a request: bearer token, API key, service key and service token.
//!
//! [`check_service_key`] compares the credentials of services once and attaches the result to the request. The other
//! functions use that result.

use core_domain::iam::{ServiceClaims, UnverifiedToken};
use core_domain::kernel::{Result, SessionId};
use core_domain::port::Mode;
use core_domain::use_case::iam::service_token::verify;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use super::header_lines::single;
use super::header_names;
use crate::kernel::process::app::App;

/// The name of callers with the service key.
const SERVICE_KEY_HOLDER: &str = "service-key";

/// A service that has authenticated itself by the service key or a service token.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    /// The name of the service.
    pub(crate) service: &'static str,
    /// The session of the person for whom the service calls, as named by its token.
    pub(crate) session: Option<SessionId>,
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
pub(crate) struct KeyCheck {
    /// The service whose credential is the bearer token.
    pub(crate) in_bearer: Option<Holder>,
    /// The service whose credential is in `X-Core-Service-Key`.
    in_hop_header: Option<Holder>,
}

impl KeyCheck {
    /// Returns the stored result, or compares the service key now.
    pub(crate) fn of(app: &App, request: &Parts) -> Self {
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
            in_hop_header: holder(hop_credential(&request.headers)),
        }
    }

    /// Like [`Self::of_key`], and verifies service tokens for the service of this name.
    async fn of_any(app: &App, audience: &str, request: &Parts) -> Self {
        let mut found = Self::of_key(app, request);
        let headers = &request.headers;
        for (holder, presented) in [
            (&mut found.in_bearer, bearer(headers)),
            (&mut found.in_hop_header, hop_credential(headers)),
        ] {
            if let (None, Some(presented)) = (&holder, presented)
                && is_token_like(presented)
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
pub(crate) fn hop_credential(headers: &HeaderMap) -> Option<&str> {
    headers.get(&header_names::SERVICE_KEY)?.to_str().ok()
}

/// Returns the API key of a request. `None` if the header is missing, or occurs more than once and is ambiguous.
pub(crate) fn presented_api_key(headers: &HeaderMap) -> Option<&str> {
    single(headers, &header_names::API_KEY)?.to_str().ok()
}

/// Returns the token of `Authorization: Bearer`. The scheme is not case-sensitive.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (_, token) = bearer_header(headers)?.to_str().ok()?.split_once(' ')?;
    Some(token.trim())
}

/// Returns the `Authorization` header if its scheme is `Bearer`. Other schemes are meant for a
/// proxy in front of the service.
pub(crate) fn bearer_header(headers: &HeaderMap) -> Option<&HeaderValue> {
    let value = headers.get(header::AUTHORIZATION)?;
    let scheme = value.as_bytes().split(|byte| *byte == b' ').next()?;
    scheme.eq_ignore_ascii_case(b"bearer").then_some(value)
}

/// Returns whether a text has the form of a service token. Otherwise the store need not be read.
pub(crate) fn is_token_like(presented: &str) -> bool {
    UnverifiedToken::parse(presented).is_ok()
}

/// Returns the claims of a valid token for the service of this name. `None` for any other text, and if the token cannot
/// be verified because the store fails.
pub(crate) async fn claims_of(app: &App, audience: &str, presented: &str) -> Option<ServiceClaims> {
    match verify_token(app, audience, presented).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::warn!(?error, "a service token could not be verified");
            None
        }
    }
}

/// Verifies a token with the keys in the store; `None` if it is invalid.
async fn verify_token(app: &App, audience: &str, token: &str) -> Result<Option<ServiceClaims>> {
    let mut uow = app.store.begin(Mode::Auto).await?;
    let claims = verify(uow.as_mut(), token, &app.issuer, audience).await;
    uow.rollback().await;
    claims
}
