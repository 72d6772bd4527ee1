//! Reading a request: everything that turns bytes and headers into typed, validated input.
//!
//! This folder does not decide whether a caller is accepted (`super::admission`), and it does not know what a handler
//! does with its input (`super::endpoint`).
//!
//! - `body`: bodies of requests and responses, with time limits. `draining`: the shutdown of the server.
//! - `json`, `parse`, `check`, `check_request`: strict JSON, query strings and forms, validation by schema.
//! - `input`, `dry_run`: the types that a handler receives.
//! - `client`, `header_names`: the client's address, the request id, and the headers of the suite.

pub(super) mod body;
pub(super) mod check;
pub(super) mod check_request;
pub(super) mod client;
pub(super) mod draining;
pub(super) mod dry_run;
pub(crate) mod header_names;
pub(super) mod input;
pub(super) mod json;
pub(super) mod parse;
