//! Workers: scripts, their bindings, and their addresses.

mod config;
mod metadata;
pub(crate) mod script;
pub(crate) mod subdomain;
pub(crate) mod upload;
