//! Pages: projects, and direct uploads of sites.

mod asset;
mod bucket;
pub(crate) mod config;
pub(crate) mod deployment;
mod known_contents;
mod plan;
pub(crate) mod project;
pub(crate) mod receipt;
pub(crate) mod site;
mod token;
mod transfer;
