//! The gateway: the public entry point of every service.
//!
//! [`Gateway`] is a `tower::Service` over any request body. A request passes the steps of the interface in their order,
//! each a file in `step`: security headers, errors to envelopes, request id, log, time, rate limit, CORS,
//! tracing, authentication, suspension; then it is proxied to the service its path belongs to.
//!
//! What the gateway needs from outside are four small traits: [`Authority`] says who calls, an [`Upstream`] is a service
//! (in this process or behind HTTP), a [`RateLimiter`](core_domain::port::RateLimiter) counts requests, and the domain's
//! clock and entropy.
//!
//! How an upstream learns of the caller: in process, from the extensions `Arc<`[`Caller`](core_domain::kernel::Caller)`>` and
//! [`ForwardedPrefix`](crate::kernel::ForwardedPrefix); over HTTP, from `X-Core-User-Id`
//! or `X-Core-Api-Key-Id` beside a service token ([`ServiceTokens`]), which claims the caller's session. Such headers of a client
//! are removed.

mod authority;
mod config;
mod event_stream;
mod exchange;
mod framing;
mod headers;
mod http_upstream;
mod identity;
mod invalidate;
mod proxy;
mod refusal;
mod routes;
mod service;
mod service_tokens;
mod session_cache;
mod step;
mod upload;
mod upstream;
mod vouching;

pub use authority::{Authority, AuthorityError, Resolved};
pub use config::{ConfigError, GatewayConfig};
pub use http_upstream::HttpUpstream;
pub use invalidate::Invalidate;
pub use routes::{RouteClass, RouteClasses, RouteTable};
pub use service::{Gateway, GatewayFuture, Ports};
pub use service_tokens::ServiceTokens;
pub use upstream::{InProcess, Upstream, UpstreamError, Upstreams};
