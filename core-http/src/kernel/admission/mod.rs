//! Admission: decides whether a request is processed, and for which caller.
//!
//! This folder does not contain authorization, which depends on records: the scopes of `core_domain::access` check
//! permissions in the unit of work of the handler (`super::endpoint`).
//!
//! - `policy`: the order of the checks for requests that did not come through a gateway.
//! - `rate_limit`, `limiter`: quotas of clients and API keys, and the lockout after rejected credentials.
//! - `cors`: the cross-origin policy of the gateway and of services.
//! - `identify`, `service_key`: authentication by a gateway, by the service key, or by a service token.
//! - `idempotency`: `Idempotency-Key`, which makes a repeated write return the response of the first one.

pub(crate) mod cors;
pub(super) mod idempotency;
pub(super) mod identify;
pub(crate) mod limiter;
pub(super) mod policy;
pub(crate) mod rate_limit;
pub(super) mod service_key;
