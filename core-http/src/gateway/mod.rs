//! The gateway: the public entry point of every service.
//!
//! [`Gateway`] is a `tower::Service` over any request body. A request passes the steps of the interface in order:
//! security headers, error envelopes, request id, log, time, rate limit, CORS, tracing, authentication and suspension.
//! Each step is a file in `step`. The request is then proxied to the service that its path belongs to.
//!
//! The gateway depends on four traits. [`Authority`] resolves credentials to callers. An [`Upstream`] is a service, in
//! this process or reached over HTTP. A [`RateLimiter`](core_domain::port::RateLimiter) counts requests. The clock and
//! the entropy source are those of the domain. A [`UsageMeter`], if there is one, counts what platforms use.
//!
//! An upstream in this process reads the caller from the extensions `Arc<`[`Caller`](core_domain::kernel::Caller)`>`
//! and [`ForwardedPrefix`](crate::kernel::ForwardedPrefix). An upstream reached over HTTP reads it from
//! `X-Core-User-Id` or `X-Core-Api-Key-Id`, together with a service token ([`ServiceTokens`]) that names the session of
//! the caller. Such headers are removed from the requests of clients.

mod authority;
mod breaker;
mod config;
mod event_stream;
mod exchange;
mod framing;
mod guarded_body;
mod headers;
mod http_authority;
mod http_upstream;
mod identity;
mod invalidate;
mod proxy;
mod reference;
mod refusal;
mod resource_metadata;
mod routes;
mod service;
mod service_tokens;
mod session_cache;
mod step;
mod timeouts;
mod upload;
mod upstream;
mod upstream_metrics;
mod usage_meter;
mod vouching;

pub use authority::{Authority, AuthorityError, ResolvedCredential};
pub use config::{ConfigError, GatewayConfig};
pub use http_authority::HttpAuthority;
pub use http_upstream::HttpUpstream;
pub use invalidate::Invalidate;
pub use routes::{RouteClass, RouteClasses, RouteTable};
pub use service::{Gateway, GatewayFuture, Ports};
pub use service_tokens::ServiceTokens;
pub use timeouts::ServiceTimeouts;
pub use upstream::{InProcess, Upstream, UpstreamError, Upstreams};
pub use usage_meter::{ExhaustedRequests, UsageMeter};
