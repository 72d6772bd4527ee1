//! The compiled service: the endpoint table with its router and policies.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use core_domain::gateway::TrustedProxies;
use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use super::definition::Endpoint;
use super::measurement::ServiceMetrics;
use super::openapi::{self, OpenApi};
use super::router::{Route, Router};
use super::service_error::ServiceError;
use crate::kernel::admission::cors::CorsPolicy;
use crate::kernel::admission::identify::Identify;
use crate::kernel::admission::rate_limit::RateLimits;
use crate::kernel::answer::envelope::{ErrorPages, ErrorStyle};
use crate::kernel::process::app::App;
use crate::kernel::request::client::forwarded_prefix;

/// The compiled service, which all clones of a [`Service`](super::service::Service) share.
#[derive(Debug)]
pub(crate) struct CompiledService {
    pub(crate) name: &'static str,
    pub(crate) app: Arc<App>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) router: Router,
    pub(crate) identify: Arc<dyn Identify>,
    pub(crate) proxies: TrustedProxies,
    /// The CORS policy; `None` if no CORS headers are sent.
    pub(crate) cors: Option<CorsPolicy>,
    pub(crate) rates: RateLimits,
    pub(crate) metrics: ServiceMetrics,
    pub(crate) better_auth: Option<&'static str>,
    pub(crate) error_pages: Option<Arc<dyn ErrorPages>>,
    /// The texts of the OpenAPI document about the service as a whole.
    pub(crate) about: OpenApi,
    /// The OpenAPI document; empty until it is first requested.
    pub(crate) openapi: OnceLock<Result<Bytes, ServiceError>>,
}

impl CompiledService {
    /// Returns the OpenAPI document as JSON text. The first call creates it.
    pub(crate) fn openapi(&self) -> Result<Bytes, ServiceError> {
        let create = || {
            let document = openapi::document(&self.about, &self.endpoints)?;
            Ok(Bytes::from(document.to_string()))
        };
        self.openapi.get_or_init(create).clone()
    }

    /// Finds the route of a request, in any spelling of its path.
    pub(crate) fn route<'r>(&'r self, parts: &'r Parts) -> Option<Route<'r>> {
        let prefix = forwarded_prefix(&self.app, &self.proxies, parts);
        self.router.find(parts.uri.path(), prefix)
    }

    /// Returns the cookies of a request to the routes of better-auth, so that an error response can clear those of an
    /// ended session. Empty for other routes.
    pub(crate) fn better_auth_cookies(
        &self,
        headers: &HeaderMap,
        style: ErrorStyle,
    ) -> Vec<HeaderValue> {
        match style {
            ErrorStyle::TopLevelCode => headers.get_all(COOKIE).iter().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the endpoint of a route and method and the index of its row, if there is one.
    pub(crate) fn endpoint(
        &self,
        route: &Route<'_>,
        method: &Method,
    ) -> Option<(usize, &Endpoint)> {
        let row = route.row(method)?;
        Some((row, self.endpoints.get(row)?))
    }
}
