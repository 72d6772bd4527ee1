//! Identifies the callers of IAM and protects against cross-site request forgery.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::iam::DeviceCookie;
use core_domain::kernel::{Caller, Code, Error, Result};
use core_domain::port::{Mode, Store};
use core_domain::use_case::iam::session::{SessionDetails, details_by_token};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, header};

use super::api_key::KeyLimits;
use super::config::Iam;
use crate::kernel::request::credentials::bearer_header;
use crate::kernel::{
    App, Cx, Identify, default_caller, invalid_origin, is_unauthenticated, known_caller,
    presented_api_key,
};

/// The path prefix of better-auth's routes.
pub(super) const AUTH_ROUTES: &str = "/api/auth/";

/// Identifies callers by their session or API key if the methods that all services share did not identify them. Of
/// bearer token, API key and cookies, the first that is present decides.
#[derive(Debug)]
pub(super) struct IdentifySessions {
    pub(super) iam: Arc<Iam>,
    pub(super) limits: Arc<KeyLimits>,
}

#[async_trait]
impl Identify for IdentifySessions {
    async fn identify(&self, app: &App, request: &mut Parts) -> Result<Arc<Caller>> {
        self.iam.refuse_forgery(request)?;
        let known = known_caller(app, request).await?;
        if let Some(caller) = known.as_ref().filter(|caller| !is_unauthenticated(caller)) {
            return Ok(Arc::clone(caller));
        }
        let nobody = known.unwrap_or_else(|| default_caller(app));
        if bearer_header(&request.headers).is_none()
            && let Some(key) = presented_api_key(&request.headers)
        {
            let caller = self.limits.caller_of(app.store.as_ref(), key).await?;
            return Ok(caller.map_or(nobody, Arc::new));
        }
        let Some(token) = self.iam.presented_token(&request.headers) else {
            return Ok(nobody);
        };
        let session = PresentedSession::look_up(app.store.as_ref(), token).await?;
        let caller = session.details.as_ref().map(SessionDetails::caller);
        request.extensions.insert(Arc::new(session));
        Ok(caller.map_or(nobody, Arc::new))
    }

    fn clear_cookies(&self, cookies: &[HeaderValue], answer: &mut HeaderMap) {
        let mut cookies = cookies.iter().filter_map(|value| value.to_str().ok());
        let names = self.iam.names;
        if !cookies.any(|line| self.iam.signer.token_in_cookies(names, line).is_some()) {
            return;
        }
        for cookie in names.clear_all() {
            if let Ok(value) = HeaderValue::try_from(cookie) {
                answer.append(header::SET_COOKIE, value);
            }
        }
    }
}

/// The token of a request and the session that it belongs to.
pub(super) struct PresentedSession {
    pub(super) token: String,
    /// The session; `None` if the token is unknown or its session has expired.
    pub(super) details: Option<SessionDetails>,
}

// The token stays out of logs.
impl std::fmt::Debug for PresentedSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PresentedSession")
            .field("details", &self.details)
            .finish_non_exhaustive()
    }
}

impl PresentedSession {
    async fn look_up(store: &dyn Store, token: String) -> Result<Self> {
        let details = session_of(store, &token).await?;
        Ok(Self { token, details })
    }

    /// Returns the session that the request presents; `None` if it has no token. Uses the details that were loaded when
    /// the caller was identified, otherwise loads them from the store.
    pub(super) async fn of(cx: &Cx, iam: &Iam) -> Result<Option<Arc<Self>>> {
        if let Some(found) = cx.extensions.get::<Arc<Self>>() {
            return Ok(Some(Arc::clone(found)));
        }
        let Some(token) = iam.presented_token(&cx.headers) else {
            return Ok(None);
        };
        let found = Self::look_up(cx.app.store.as_ref(), token).await?;
        Ok(Some(Arc::new(found)))
    }
}

/// Finds the session of a token. A single query, so it needs no transaction.
pub(super) async fn session_of(store: &dyn Store, token: &str) -> Result<Option<SessionDetails>> {
    let mut uow = store.begin(Mode::Auto).await?;
    let found = details_by_token(uow.as_mut(), token).await;
    uow.rollback().await;
    found
}

/// Returns whether the request has a bearer token, which takes precedence over cookies.
pub(super) fn has_bearer(headers: &HeaderMap) -> bool {
    bearer_header(headers).is_some()
}

/// Returns whether the browser reports that a page of another site or origin sent the request.
fn is_from_another_site(headers: &HeaderMap) -> bool {
    let said = headers.get("sec-fetch-site").map(|value| value.as_bytes());
    said.is_some_and(|said| said != b"same-origin" && said != b"none")
}

impl Iam {
    /// Rejects cross-site request forgery. Browsers send cookies with requests of any page, so a write request with
    /// cookies must come from a trusted origin.
    ///
    /// Browsers always send the origin of such a request. The suite's own routes therefore accept a request without
    /// one, unless `Sec-Fetch-Site` reports another site. The routes of better-auth require the `Origin` header.
    fn refuse_forgery(&self, request: &Parts) -> Result<()> {
        let safe = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if safe || !request.headers.contains_key(header::COOKIE) {
            return Ok(());
        }
        let origin = request.headers.get(header::ORIGIN);
        let of_the_suite = !request.uri.path().starts_with(AUTH_ROUTES);
        if origin.is_none() && of_the_suite && !is_from_another_site(&request.headers) {
            return Ok(());
        }
        let origin = origin
            .and_then(|value| value.to_str().ok())
            .filter(|origin| *origin != "null");
        match origin {
            None => Err(Error::refused(
                Code::MissingOrNullOrigin,
                "Missing or null Origin",
            )),
            Some(origin) if self.trusts(origin) => Ok(()),
            Some(_) => Err(invalid_origin()),
        }
    }

    /// Returns the session token of a request: from the bearer token if there is one, otherwise from the cookies.
    pub(super) fn presented_token(&self, headers: &HeaderMap) -> Option<String> {
        match bearer_header(headers) {
            Some(value) => self.signer.token_in_bearer(value.to_str().ok()?),
            None => self.cookie_token(headers),
        }
    }

    /// Returns the session token of the cookies if its signature is valid.
    pub(super) fn cookie_token(&self, headers: &HeaderMap) -> Option<String> {
        self.signed_cookie(self.names.session(), headers)
    }

    /// Returns the token of a sign-in that waits for its second factor, if its signature is valid.
    pub(super) fn challenge_token(&self, headers: &HeaderMap) -> Option<String> {
        self.signed_cookie(self.names.two_factor(), headers)
    }

    /// Returns the token of a trusted device, if its signature is valid. Whether the device is still trusted is not
    /// checked here.
    pub(super) fn device_token(&self, headers: &HeaderMap) -> Option<String> {
        self.signed_cookie(self.names.trust_device(), headers)
    }

    /// Returns the device cookie: the accounts that the browser signed in to before.
    pub(super) fn device_cookie(&self, headers: &HeaderMap) -> DeviceCookie {
        let in_cookies = |line: &str| DeviceCookie::in_cookies(&self.signer, self.names, line);
        cookie_lines(headers)
            .find_map(in_cookies)
            .unwrap_or_default()
    }

    /// Returns the token of a passkey challenge, if its signature is valid.
    pub(super) fn passkey_token(&self, headers: &HeaderMap) -> Option<String> {
        self.signed_cookie(self.names.passkey(), headers)
    }

    fn signed_cookie(&self, name: &str, headers: &HeaderMap) -> Option<String> {
        cookie_lines(headers).find_map(|line| self.signer.value_in_cookies(name, line))
    }
}

fn cookie_lines(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter();
    lines.filter_map(|value| value.to_str().ok())
}
