//! The handle of the metrics of a suite.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use core_http::kernel::metrics::Description;
use core_http::kernel::{Body, MetricsService};
use http::{Request, Response};

use super::backlog::Backlog;

/// The metrics of a suite, as a `tower::Service` with the paths `/metrics`, `/livez` and `/readyz`. Cheap to clone.
///
/// The service requires no credential. Serve it on an address that only the scraper reaches, or render the metrics
/// in an endpoint of the host program.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), core_suite::SuiteError> {
/// use core_suite::Suite;
///
/// let suite = Suite::builder().in_memory().build().await?;
/// let metrics = suite.metrics();
/// metrics.refresh().await;
/// assert!(metrics.render().contains("core_store_healthy 1"));
/// suite.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct SuiteMetrics {
    pub(crate) service: MetricsService,
    pub(crate) backlog: Arc<Backlog>,
}

impl SuiteMetrics {
    /// Renders all series in the text format of OpenMetrics 1.0. Its content type is
    /// `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    #[must_use]
    pub fn render(&self) -> String {
        self.service.metrics().render()
    }

    /// Returns the descriptions of all metrics, sorted by name.
    #[must_use]
    pub fn descriptions(&self) -> Vec<Description> {
        self.service.metrics().descriptions()
    }

    /// Refreshes the gauges that need queries now. A background task does the same periodically, see
    /// [`MetricsOptions::refresh_every`](crate::MetricsOptions::refresh_every).
    pub async fn refresh(&self) {
        self.backlog.refresh().await;
    }
}

impl<B: Send + 'static> tower::Service<Request<B>> for SuiteMetrics {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <MetricsService as tower::Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        tower::Service::<Request<B>>::poll_ready(&mut self.service, cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.service.call(request)
    }
}
