//! The gateway: one door for every service.
//!
//! [`Gateway`] is a `tower::Service` over any request body. A request passes the steps of the interface in their order,
//! each a tower layer in [`layer`](self): security headers, errors to envelopes, request id, log, time, rate limit, CORS,
//! tracing, authentication, suspension; then it is proxied to the service its path belongs to.
//!
//! What the gateway needs from outside are four small traits: [`Authority`] says who calls, an [`Upstream`] is a service
//! (in this process or behind HTTP), a [`Limiter`] counts requests, and the domain's clock and entropy.
//!
//! What an upstream is told about the caller: in process, the extensions [`Caller`](core_domain::kernel::Caller) and
//! [`ForwardedPrefix`](crate::kernel::ForwardedPrefix); over HTTP the service key with `X-Core-User-Id`, `X-Core-Role` and `X-Core-Platform-Id`. Nothing a
//! client says about itself gets through.

mod authority;
mod config;
mod exchange;
mod framing;
mod headers;
mod http_upstream;
mod identity;
mod layer;
mod limiter;
mod proxy;
mod refusal;
mod service;
mod session_cache;
mod upload;
mod upstream;

#[cfg(test)]
mod tests;

pub use authority::{Authority, AuthorityError, Resolved};
pub use config::{ConfigError, GatewayConfig};
pub use http_upstream::HttpUpstream;
pub use limiter::{Limiter, LimiterError, MemoryLimiter};
pub use service::{Gateway, GatewayFuture, Ports};
pub use session_cache::Invalidate;
pub use upstream::{InProcess, Upstream, UpstreamError, Upstreams};
