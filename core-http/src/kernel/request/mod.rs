//! Reading a request: everything that turns bytes and headers into typed, validated input.
//!
//! This folder does not decide whether a caller is accepted (`super::admission`), and it does not know the table of
//! endpoints or what a handler does with its input (`super::endpoint`).
//!
//! - `body`: bodies of requests and responses, with time limits. `draining`: the shutdown of the server.
//! - `json`, `parse`, `check`: strict JSON, query strings and forms, validation by schema.
//! - `context`, `input`, `dry_run`: the types that a handler receives.
//! - `client`, `credentials`, `idempotency_key`: the facts in the headers: the client's address, the request id, the
//!   credentials, the idempotency key.
//! - `shown_path`: the path without secrets, for traces.
//! - `header_lines`, `header_names`, `media_types`: headers that occur once, the headers of the suite, and
//!   content types.

pub(super) mod body;
pub(super) mod check;
pub(crate) mod client;
pub(super) mod context;
pub(crate) mod credentials;
pub(super) mod draining;
pub(super) mod dry_run;
pub(crate) mod header_lines;
pub(crate) mod header_names;
pub(super) mod idempotency_key;
pub(super) mod input;
pub(super) mod json;
pub(super) mod media_types;
pub(super) mod origin;
pub(super) mod parse;
pub(super) mod shown_path;
