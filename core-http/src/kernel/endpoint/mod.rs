//! The typed table of endpoints, from the row to the pipeline that runs its handler.
//!
//! This folder contains everything that is derived from rows: types of handlers, authorization by scopes, routing, the
//! compiled service, and OpenAPI. It does not contain the parts that a pipeline calls: reading a request
//! (`super::request`), writing a response (`super::answer`), and decisions about the caller (`super::admission`).
//!
//! - `row`, `definition`: an endpoint's declaration, and the same with its handler.
//! - `two_parts`, `two_part_handler`: handlers that call another system after their unit of work.
//! - `handler`, `use_case`, `scope`, `shapes`: what a handler receives, and what the row learns from its types.
//! - `router`, `compiled`, `service`, `service_error`: the table as a `tower::Service`.
//! - `policy`, `authenticate`, `check_request`, `pipeline`: the steps from a request to its response, which apply the
//!   checks of `super::admission`.
//! - `final_refusal`: which refusals are stored under idempotency keys.
//! - `measurement`, `metrics_service`: the metrics of each endpoint, and the service that shows all metrics.
//! - `health`: the paths that every service has without a row.
//! - `openapi`: the description of the table.

pub(super) mod authenticate;
pub(super) mod check_request;
pub(super) mod compiled;
pub(super) mod definition;
pub(super) mod final_refusal;
pub(super) mod handler;
pub(super) mod health;
pub(crate) mod measurement;
pub(super) mod metrics_service;
pub(super) mod openapi;
pub(super) mod pipeline;
pub(super) mod policy;
pub(super) mod router;
pub(super) mod row;
pub(super) mod scope;
pub(super) mod service;
pub(super) mod service_error;
mod service_span;
pub(super) mod shapes;
pub(super) mod two_part_handler;
pub(super) mod two_parts;
pub(super) mod use_case;
