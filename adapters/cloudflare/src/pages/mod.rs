//! Pages: projects, and sites that are put up by direct upload.

mod asset;
mod bucket;
pub(crate) mod config;
pub(crate) mod deployment;
pub(crate) mod project;
pub(crate) mod site;
mod token;
mod transfer;
