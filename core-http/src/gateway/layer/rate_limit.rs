//! Step 6: the rate limits of a client, over all paths and for each path. Before authentication, so that failed attempts
//! count as well.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use core_domain::gateway::{Destination, RateKind, RateSubject};
use http::{HeaderMap, HeaderName};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, headers_of};
use crate::gateway::refusal::Refusal;
use crate::gateway::upstream::{KnownRoute, Upstreams};
use crate::kernel::cors::intended_method;
use crate::kernel::rate_limit::{Counted, RateLimits, insert};

/// The client address of requests without a connection.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

#[derive(Clone, Debug)]
pub(crate) struct RateLimit {
    pub(crate) settings: Arc<Settings>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) rates: Arc<RateLimits>,
}

impl Step for RateLimit {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        if inbound.exchange.is_health() {
            return next.oneshot(inbound).await;
        }
        let client = inbound.exchange.client;
        let (kind, subject) = self.subject(&inbound);
        let counted = match client {
            Some(client) => self.rates.count(client, kind, subject).await,
            // There is no client to apply the overall limit to.
            None => self.rates.take(kind, NO_ADDRESS, subject).await,
        };
        let mut outcome = match counted.refusal() {
            None => next.oneshot(inbound).await,
            Some(error) => Err(Refusal::from(error)),
        };
        self.write(&counted, headers_of(&mut outcome));
        outcome
    }
}

impl RateLimit {
    /// What a request is counted for. Invalid paths and unknown routes are one subject: otherwise each random path would get
    /// a window of its own.
    fn subject<'i>(&'i self, inbound: &'i Inbound) -> (RateKind, RateSubject<'i>) {
        let unknown = (RateKind::Default, RateSubject::UnknownRoutes);
        let request = &inbound.request;
        let Ok(Destination::Service(route)) = &inbound.exchange.destination else {
            return unknown;
        };
        let method = intended_method(request.method(), request.headers());
        let path = RateSubject::Path(request.uri().path());
        match self.upstreams.route(&method, route) {
            KnownRoute::Unknown => unknown,
            KnownRoute::Unlisted => (RateKind::Default, path),
            KnownRoute::Listed(listed) => match RateKind::from(listed.class) {
                RateKind::Default => (RateKind::Default, path),
                kind => {
                    let service = route.service.as_str();
                    let endpoint = listed.endpoint;
                    (kind, RateSubject::Endpoint { service, endpoint })
                }
            },
        }
    }

    fn write(&self, counted: &Counted<'_>, headers: &mut HeaderMap) {
        counted.write(headers);
        if self.settings.older_rate_headers {
            let usage = &counted.usage;
            let lines = [
                ("ratelimit-limit", counted.policy.quota().to_string()),
                ("ratelimit-remaining", usage.remaining.to_string()),
                ("ratelimit-reset", usage.reset_after.to_string()),
            ];
            for (name, text) in lines {
                insert(headers, HeaderName::from_static(name), text);
            }
        }
    }
}
