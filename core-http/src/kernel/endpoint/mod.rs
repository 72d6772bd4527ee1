//! The typed table of endpoints, from the row to the pipeline that runs its handler.
//!
//! This folder contains everything that is derived from rows: types of handlers, authorization by scopes, routing, the
//! compiled service, and OpenAPI. It does not contain the parts that a pipeline calls: reading a request
//! (`super::request`), writing a response (`super::answer`), and decisions about the caller (`super::admission`).
//!
//! - `row`, `definition`: an endpoint's declaration, and the same with its handler.
//! - `handler`, `context`, `scope`, `shapes`: what a handler receives, and what the row learns from its types.
//! - `router`, `pipeline`: finding the row of a request, and running it.
//! - `service`, `health`: the table as a `tower::Service` with its settings and ports, and its health checks.
//! - `openapi`: the description of the table.

pub(super) mod context;
pub(super) mod definition;
pub(super) mod handler;
pub(super) mod health;
pub(super) mod openapi;
pub(super) mod pipeline;
pub(super) mod router;
pub(super) mod row;
pub(super) mod scope;
pub(super) mod service;
pub(super) mod shapes;
