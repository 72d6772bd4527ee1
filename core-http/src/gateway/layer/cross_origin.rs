//! Without a service key no credential is required, so cross-origin requests of browsers are refused unless their origin is
//! allowed.

use std::sync::Arc;

use http::header::HOST;
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, single_text};
use crate::gateway::refusal::Refusal;
use crate::kernel::cors::is_cross_origin;
use crate::kernel::cross_origin_error;

#[derive(Clone, Debug)]
pub(crate) struct CrossOrigin(pub(crate) Arc<Settings>);

impl Step for CrossOrigin {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        if self.0.service_key.is_none()
            && !inbound.exchange.is_health()
            && self.is_cross_origin(&inbound)
        {
            return Err(Refusal::from(cross_origin_error()));
        }
        next.oneshot(inbound).await
    }
}

impl CrossOrigin {
    fn is_cross_origin(&self, inbound: &Inbound) -> bool {
        let (request, from_proxy) = (&inbound.request, inbound.exchange.from_proxy);
        let headers = request.headers();
        let forwarded = single_text(headers, "x-forwarded-host").filter(|_| from_proxy);
        let host = forwarded
            .or_else(|| single_text(headers, HOST.as_str()))
            .or_else(|| {
                request
                    .uri()
                    .authority()
                    .map(|authority| authority.as_str())
            });
        let is_allowed = |origin: &[u8]| self.0.origins.find(origin).is_some();
        is_cross_origin(request.method(), headers, host, is_allowed)
    }
}
