//! The endpoint kernel: everything about HTTP that is not about one service.
//!
//! A service is a list of [`Endpoint`] rows; [`Service`] routes, identifies, checks, opens the unit of work and
//! answers. The crate documentation tells how to add an endpoint.

mod admission;
mod answer;
mod answer_media;
mod app;
mod better_auth;
mod body;
mod body_error;
mod check;
mod check_request;
mod client;
mod context;
pub(crate) mod cors;
mod draining;
mod endpoint;
mod envelope;
mod error_page;
mod failed_authentications;
mod format;
mod handler;
pub(crate) mod header_names;
mod health;
mod idempotency;
mod identify;
mod inner;
mod input;
mod json;
mod jwk;
mod lists;
mod long_poll;
mod memory_limiter;
mod oauth_error;
mod openapi;
mod options;
mod parse;
mod pipeline;
pub(crate) mod rate_limit;
mod reply;
mod request_id;
mod router;
mod row;
mod scope;
mod seal_signal;
mod service;
mod service_error;
mod service_key;
mod service_token;
mod shapes;
mod status;
#[cfg(feature = "testing")]
pub mod testing;
mod timed_body;
mod with_state;

pub(crate) use admission::cross_origin_error;
pub use answer::{Answer, AnswerKind, Output, Versioned};
pub(crate) use answer_media::SCRIPT_POLICY;
pub use answer_media::{
    Event, EventStream, Html, Media, MediaStream, PageOr, Redirect, RedirectOr,
};
pub use app::App;
pub use body::{Body, bytes_body, empty_body, read_body};
pub use body_error::{BodyTimeout, BoxError};
pub use client::{ClientIp, PeerAddr, ViaGateway};
pub use context::{Cx, ForwardedPrefix};
pub use draining::Draining;
pub use endpoint::{Endpoint, Shape, tagged};
pub use envelope::{ErrorStyle, error_response};
pub use error_page::ErrorPages;
pub use handler::{PlainHandler, UnitHandler, UploadHandler};
pub use idempotency::InFlight;
pub(crate) use idempotency::KEY_PATTERN;
pub use identify::{Identify, ServiceKeyOnly, default_caller, known_caller};
pub(crate) use identify::{UNAUTHENTICATED, is_unauthenticated, presented_api_key};
pub use input::{Input, PathParams, RawInput, Unparsed};
pub use json::parse_strict;
pub use jwk::JsonWebKey;
pub use lists::{Counted, Data, ListP1, ListP2, ListP4, ListP5, PaginationP1, Success};
pub use long_poll::{Wait, WaitQuery};
pub use memory_limiter::MemoryRateLimiter;
pub use options::{MAX_BODY_BYTES, ServiceOptions};
pub use reply::{Content, Reply};
pub(crate) use request_id::own_value;
pub use request_id::request_id;
pub use row::{Row, delete, get, patch, post, put};
pub use scope::{CallerScope, OnOrganization, OnPlatform, OpenScope};
pub use seal_signal::SealSignal;
pub use service::{Service, ServiceBuilder};
pub use service_error::ServiceError;
pub(crate) use service_key::TokenDigest;
pub use service_key::{ServiceKey, ServiceKeyError};
pub use status::status_of;
pub use timed_body::{BodyTimes, TimedBody};
pub use with_state::{WithState, with};
