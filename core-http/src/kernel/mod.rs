//! Everything about HTTP that does not belong to one service or to the gateway alone; no route, record or rule of a
//! service.
//!
//! A service is a table of [`Endpoint`] rows. [`Service`] routes each request to its row, authenticates the caller,
//! validates the input, opens the unit of work, runs the handler and writes the response. The crate documentation
//! explains how to add an endpoint.
//!
//! # Folders
//! - `admission`: decides whether a request is processed at all: rate limits, cross-origin policy, authentication,
//!   idempotency keys.
//! - `request`: reads a request: body, JSON, schema validation, typed input, client address, header names.
//! - `endpoint`: the typed table of endpoints, from the row to the pipeline: rows, handlers, scopes, router, service,
//!   health checks, OpenAPI.
//! - `answer`: writes a response: JSON, entity tags, lists, errors, files, pages, event streams, long polls.
//!
//! A request passes `admission::policy`, then `endpoint::pipeline`, which uses the other folders. The module `testing`
//! calls a service without a server.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod endpoint;
pub(crate) mod request;
#[cfg(feature = "testing")]
pub mod testing;

pub(crate) use crate::kernel::admission::policy::cross_origin_error;
pub use crate::kernel::answer::reply::{Answer, AnswerKind, Output, Versioned};
pub use crate::kernel::answer::reply::{Content, Reply};
pub use crate::kernel::endpoint::definition::{Endpoint, Shape, tagged};
pub use admission::idempotency::InFlight;
pub(crate) use admission::idempotency::KEY_PATTERN;
pub use admission::identify::{Identify, ServiceKeyOnly, default_caller, known_caller};
pub(crate) use admission::identify::{UNAUTHENTICATED, is_unauthenticated, presented_api_key};
pub use admission::limiter::MemoryRateLimiter;
pub(crate) use admission::service_key::TokenDigest;
pub use admission::service_key::{ServiceKey, ServiceKeyError};
pub use answer::envelope::ErrorPages;
pub(crate) use answer::envelope::error_body;
pub use answer::envelope::status_of;
pub use answer::envelope::{ErrorStyle, error_response};
pub use answer::feed::AccessSignal;
pub use answer::feed::OpenStreams;
pub use answer::feed::SealSignal;
pub use answer::feed::{EVENT_HEARTBEAT, Feed, LAST_EVENT_ID, Listening, News, Then};
pub use answer::jwk::JsonWebKey;
pub use answer::lists::{
    Counted, Data, ListP1, ListP2, ListP3, ListP4, ListP5, PaginationP1, Success,
};
pub use answer::long_poll::{Wait, WaitQuery};
pub use answer::media::{
    Event, EventStream, Html, JsonOrEvents, Media, MediaStream, PageOr, Redirect, RedirectOr,
};
pub(crate) use answer::media::{SCRIPT_POLICY, form_policy};
pub use endpoint::context::{Cx, ForwardedPrefix};
pub use endpoint::handler::{PlainHandler, UnitHandler, UploadHandler};
pub use endpoint::handler::{WithState, with};
pub use endpoint::health::StoreCheck;
pub use endpoint::row::{Row, delete, get, patch, post, put};
pub use endpoint::scope::{BySession, CallerScope, OnOrganization, OnPlatform, OpenScope};
pub use endpoint::service::App;
pub use endpoint::service::ServiceError;
pub use endpoint::service::{MAX_BODY_BYTES, ServiceOptions};
pub use endpoint::service::{Service, ServiceBuilder};
pub use request::body::{Body, bytes_body, empty_body, read_body};
pub use request::body::{BodyTimeout, BoxError};
pub use request::body::{BodyTimes, TimedBody};
pub(crate) use request::client::own_value;
pub use request::client::request_id;
pub use request::client::{ClientIp, PeerAddr, ViaGateway};
pub use request::draining::{Draining, Stopping};
pub use request::dry_run::{DryRunQuery, Planned};
pub use request::input::{Input, PathParams, RawInput, ReasonBody, Unparsed};
pub use request::json::parse_strict;
