//! What is known of a service besides the request.

use std::sync::Arc;

use core_domain::gateway::TrustedProxies;
use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use super::app::App;
use super::client::forwarded_prefix;
use super::cors::CorsPolicy;
use super::endpoint::Endpoint;
use super::envelope::ErrorStyle;
use super::error_page::ErrorPages;
use super::identify::Identify;
use super::rate_limit::RateLimits;
use super::router::{Route, Router};

/// A service, compiled.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) name: &'static str,
    pub(super) app: Arc<App>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) router: Router,
    pub(super) identify: Arc<dyn Identify>,
    pub(super) proxies: TrustedProxies,
    pub(super) cors: CorsPolicy,
    pub(super) rates: RateLimits,
    pub(super) better_auth: Option<&'static str>,
    pub(super) error_pages: Option<Arc<dyn ErrorPages>>,
    pub(super) openapi: String,
}

impl Inner {
    /// The route of a request, in whatever spelling.
    pub(super) fn route<'r>(&'r self, parts: &'r Parts) -> Option<Route<'r>> {
        let prefix = forwarded_prefix(&self.app, &self.proxies, parts);
        self.router.find(parts.uri.path(), prefix)
    }

    /// The cookies of a request for the authentication library, whose clients want those of a dead session taken away.
    pub(super) fn better_auth_cookies(
        &self,
        headers: &HeaderMap,
        style: ErrorStyle,
    ) -> Vec<HeaderValue> {
        match style {
            ErrorStyle::TopLevelCode => headers.get_all(COOKIE).iter().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// The row of a route for a method.
    pub(super) fn endpoint(&self, route: &Route<'_>, method: &Method) -> Option<&Endpoint> {
        self.endpoints.get(route.row(method)?)
    }
}
