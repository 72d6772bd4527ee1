//! TODO

pub(crate) mod cors;
pub(super) mod idempotency;
pub(super) mod identify;
pub(crate) mod limiter;
pub(super) mod policy;
pub(crate) mod rate_limit;
pub(super) mod service_key;
