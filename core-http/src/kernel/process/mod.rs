//! Ports, settings and state in memory that all services of a process share.
//!
//! This folder knows nothing about requests.
//!
//! - `app`, `options`: the ports and the settings.
//! - `service_key`: the static credential of operators and services.
//! - `signals`: changes that one task announces to others.
//! - `request_effects`: the effects of a request, for a gateway in another process.
//! - `tracer`: the spans of this process.
//! - `in_flight`, `open_streams`, `store_check`: idempotency keys in progress, open event streams, the store's health.

pub(super) mod app;
pub(super) mod in_flight;
pub(super) mod open_streams;
pub(super) mod options;
pub(super) mod request_effects;
pub(super) mod service_key;
pub(super) mod signals;
pub(super) mod store_check;
pub(super) mod tracer;
