//! The service that shows the metrics to a scraper.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::health;
use crate::kernel::answer::reply::Reply;
use crate::kernel::metrics::Metrics;
use crate::kernel::process::app::App;
use crate::kernel::request::body::{Body, bytes_body, empty_body};

/// The path of the metrics.
const METRICS: &str = "/metrics";

/// The content type of the format of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The content type of the format of Prometheus.
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A service with three paths: `/metrics`, `/livez` and `/readyz`. It requires no credential, so it belongs on an
/// address that only the scraper reaches. Cheap to clone.
///
/// The format is that of OpenMetrics 1.0. A client whose `Accept` names `text/plain` and not OpenMetrics receives the
/// format of Prometheus, version 0.0.4.
#[derive(Clone, Debug)]
pub struct MetricsService {
    app: Arc<App>,
}

impl MetricsService {
    /// Creates a service that shows the metrics of an app.
    #[must_use]
    pub const fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Returns the metrics.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.app.metrics
    }

    async fn answer(&self, parts: &Parts) -> Response<Body> {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
            let allow = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allow);
            return response;
        }
        if parts.uri.path() == METRICS {
            return self.show(&parts.headers);
        }
        let path = parts.uri.path();
        let reply = health::answer(&self.app, "metrics", path, &parts.extensions).await;
        // Only the probes of an orchestrator.
        let reply = reply.filter(|_| path != "/health");
        reply.map_or_else(|| empty(StatusCode::NOT_FOUND), Reply::into_response)
    }

    fn show(&self, headers: &HeaderMap) -> Response<Body> {
        let metrics = self.metrics();
        let (text, content_type) = match wants_classic(headers) {
            true => (metrics.render_classic(), CLASSIC),
            false => (metrics.render(), OPEN_METRICS),
        };
        let mut response = Response::new(bytes_body(text));
        let content_type = HeaderValue::from_static(content_type);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }

    /// Returns the response as a boxed future. Not generic, so that it is compiled in this crate.
    fn answer_boxed(self, parts: Parts) -> BoxFuture<'static, Result<Response<Body>, Infallible>> {
        Box::pin(async move {
            let response = self.answer(&parts).await;
            Ok(match parts.method {
                Method::HEAD => response.map(|_| empty_body()),
                _ => response,
            })
        })
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(empty_body());
    *response.status_mut() = status;
    response
}

/// Returns whether a client accepts the format of Prometheus and not that of OpenMetrics.
fn wants_classic(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter();
    let accepted: Vec<_> = lines.filter_map(|line| line.to_str().ok()).collect();
    let names = |name: &str| accepted.iter().any(|line| line.contains(name));
    names("text/plain") && !names("application/openmetrics-text")
}

impl<B: Send + 'static> tower::Service<Request<B>> for MetricsService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, _) = request.into_parts();
        self.clone().answer_boxed(parts)
    }
}
