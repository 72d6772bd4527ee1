//! Workers: scripts, what they are bound to, and where they are served.

mod config;
mod metadata;
pub(crate) mod script;
pub(crate) mod subdomain;
pub(crate) mod upload;
