//! The endpoint kernel: everything about HTTP that is not about one service.
//!
//! A service is a list of [`Endpoint`] rows; [`Service`] routes, identifies, checks, opens the unit of work and
//! answers. The crate documentation tells how to add an endpoint.

mod access;
mod app;
mod better_auth;
mod body;
mod check;
mod client;
mod context;
mod endpoint;
mod envelope;
mod format;
mod handler;
pub(crate) mod header_names;
mod health;
mod hold;
mod idempotency;
mod identify;
mod input;
mod json;
mod lists;
mod openapi;
mod output;
mod parse;
mod patch;
mod pipeline;
mod request_id;
mod router;
mod service;
mod status;
#[cfg(feature = "testing")]
pub mod testing;

pub use access::Access;
pub use app::{App, ServiceKey};
pub use body::{
    Body, BoxError, MAX_BODY_BYTES, bytes_body, empty_body, read_body, read_lively_body,
};
pub use client::{ClientIp, PeerAddr};
pub use context::{Cx, ForwardedPrefix};
pub use endpoint::{Endpoint, Row, delete, get, patch, post, put};
pub use envelope::{ErrorStyle, error_response};
pub use handler::{PlainHandler, UnitHandler, UploadHandler};
pub use hold::{HowLong, Wait, hold};
pub use idempotency::{Claim, InFlight};
pub use identify::{Identify, ServiceKeyOnly, known_caller, unknown_caller};
pub(crate) use identify::{UNAUTHENTICATED, was_not_asked};
pub use input::{Input, PathParams, RawInput};
pub use json::parse_strict;
pub use lists::{Counted, Limit, ListP1, ListP2, ListP4, page_request};
pub use output::{Output, Reply};
pub use patch::Patch;
pub use request_id::request_id;
pub use service::{Service, ServiceBuilder, ServiceError};
pub use status::status_of;
