//! Authentication at a service: by a gateway in the same process, by the service key, or by a service token.
//!
//! The credentials themselves are read and compared by `super::super::request::credentials`.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{
    ApiKeyId, Caller, Error, OrganizationId, PlatformId, Result, TextValue, UserId,
};
use core_domain::port::Mode;
use core_domain::use_case::iam::{NamedOrganization, named_api_key, named_person, named_session};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::kernel::process::app::App;
use crate::kernel::request::credentials::{Holder, KeyCheck};
use crate::kernel::request::header_names;

/// The name of callers without a credential if no service key is configured.
pub(crate) const UNAUTHENTICATED: &str = "unauthenticated";

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

/// Returns the caller for whom a service calls: the person or API key that the headers name, or the service itself if
/// they name none. Roles and permissions are read from the store. An unknown or ambiguous identity is anonymous;
/// treated as the service itself, it would have all permissions.
async fn on_behalf_of(app: &App, headers: &HeaderMap, holder: Holder) -> Result<Caller> {
    let (Ok(user_id), Ok(key_id)) = (
        single_header::<UserId>(headers, &header_names::USER_ID),
        single_header::<ApiKeyId>(headers, &header_names::API_KEY_ID),
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
fn single_header<T: TextValue>(headers: &HeaderMap, name: &HeaderName) -> Result<Option<T>> {
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
