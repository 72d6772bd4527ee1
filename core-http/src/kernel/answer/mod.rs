//! Writing a response: the types that handlers return, and the errors that the pipeline returns in their place.
//!
//! This folder does not contain the shapes of single services; those are next to their rows. It does not choose between
//! a success and an error (`super::endpoint`).
//!
//! - `reply`: JSON, entity tags, and the type-erased response.
//! - `lists`: the five list shapes of the interface.
//! - `media`: responses that are not JSON: files, pages, redirects, server-sent events.
//! - `asset`: static files of pages.
//! - `feed`, `long_poll`: responses that wait for something to happen.
//! - `envelope`: errors, with their statuses and their shapes.
//! - `jwk`: a public key as JSON.

pub(super) mod asset;
pub(super) mod envelope;
pub(super) mod feed;
pub(super) mod jwk;
pub(super) mod lists;
pub(super) mod long_poll;
pub(super) mod media;
pub(super) mod page_parts;
pub(super) mod reply;
