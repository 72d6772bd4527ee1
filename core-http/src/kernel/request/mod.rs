//! TODO

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
