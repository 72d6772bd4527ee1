//! Admission: decides whether a request is processed, and for which caller.
//!
//! This folder does not contain authorization, which depends on records: the scopes of `core_domain::access` check
//! permissions in the unit of work of the handler (`super::endpoint`). It does not know the table of endpoints.
//!
//! - `rate_limit`, `limiter`, `rate_metrics`: quotas of clients and API keys, and the lockout after rejected credentials.
//! - `cors`: the cross-origin policy of the gateway and of services.
//! - `identify`: authentication by a gateway, by the service key, or by a service token.
//! - `idempotency`: `Idempotency-Key`, which makes a repeated write return the response of the first one.

pub(crate) mod cors;
pub(super) mod idempotency;
pub(super) mod identify;
pub(crate) mod limiter;
pub(crate) mod rate_limit;
pub(crate) mod rate_metrics;
