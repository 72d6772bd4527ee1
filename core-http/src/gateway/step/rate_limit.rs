//! Step 6: the rate limits of a client, over all paths and per path. Runs before authentication, so that failed
//! attempts count as well.

use std::net::{IpAddr, Ipv4Addr};

use core_domain::gateway::{Destination, RateKind, RateSubject};
use http::{HeaderMap, HeaderName, HeaderValue, Request};

use crate::gateway::config::Settings;
use crate::gateway::exchange::Exchange;
use crate::gateway::upstream::{KnownRoute, Upstreams};
use crate::kernel::Body;
use crate::kernel::admission::cors::intended_method;
use crate::kernel::admission::rate_limit::{RateDecision, RateLimits};

/// The address under which requests without a connection are counted.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Counts a request of a client.
pub(super) async fn count<'s>(
    rates: &'s RateLimits,
    client: Option<IpAddr>,
    (kind, subject): (RateKind, RateSubject<'_>),
) -> RateDecision<'s> {
    match client {
        Some(client) => rates.count(client, kind, subject).await,
        // Without a client address, the overall limit cannot be applied.
        None => rates.take(kind, NO_ADDRESS, subject).await,
    }
}

/// Returns the subject that a request is counted for. Invalid paths and unknown routes share one subject; otherwise
/// each random path would get a window of its own.
pub(super) fn subject<'r>(
    settings: &Settings,
    upstreams: &'r Upstreams,
    request: &'r Request<Body>,
    exchange: &'r Exchange,
) -> (RateKind, RateSubject<'r>) {
    let unknown = (RateKind::Default, RateSubject::UnknownRoutes);
    let Ok(Destination::Service(route)) = &exchange.destination else {
        return unknown;
    };
    let method = intended_method(request.method(), request.headers());
    let service = route.service.as_str();
    let path = if settings.rate_by_prefix {
        let endpoint = route.prefix;
        RateSubject::Endpoint { service, endpoint }
    } else {
        RateSubject::Path(request.uri().path())
    };
    match upstreams.route(&method, route) {
        KnownRoute::Unknown => unknown,
        KnownRoute::NoTable => (RateKind::Default, path),
        KnownRoute::Listed(listed) => match RateKind::from(listed.class) {
            RateKind::Default => (RateKind::Default, path),
            kind => {
                let endpoint = listed.endpoint;
                (kind, RateSubject::Endpoint { service, endpoint })
            }
        },
    }
}

/// Sets the headers with the state of the rate limit.
pub(super) fn write(counted: &RateDecision<'_>, settings: &Settings, headers: &mut HeaderMap) {
    counted.write(headers);
    if settings.older_rate_headers {
        let usage = &counted.usage;
        let lines = [
            ("ratelimit-limit", u64::from(counted.policy.quota())),
            ("ratelimit-remaining", u64::from(usage.remaining)),
            ("ratelimit-reset", usage.reset_after),
        ];
        for (name, number) in lines {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(number));
        }
    }
}
