//! Everything about HTTP that does not belong to one service or to the gateway alone; no route, record or rule of a
//! service.
//!
//! A service is a table of [`Endpoint`] rows. [`Service`] routes each request to its row, authenticates the caller,
//! validates the input, opens the unit of work, runs the handler and writes the response. The crate documentation
//! explains how to add an endpoint.
//!
//! # Folders
//! Each folder may import the folders before it in this list:
//! - `metrics`: counters, gauges and histograms, and the registry that renders them.
//! - `process`: ports, settings and state in memory that all services of a process share.
//! - `request`: reads a request: body, JSON, schema validation, typed input, client address, credentials, header names.
//! - `answer`: writes a response: JSON, entity tags, lists, errors, files, pages, event streams, long polls.
//! - `admission`: decides whether a request is processed at all: rate limits, cross-origin policy, authentication,
//!   idempotency keys.
//! - `endpoint`: the typed table of endpoints, from the row to the pipeline: rows, handlers, scopes, router, service,
//!   health checks, OpenAPI.
//! - `reference`: the API reference at `/docs`, a viewer of OpenAPI documents.
//!
//! A request passes `endpoint::policy`, then `endpoint::pipeline`, which use the other folders. The module `testing`
//! calls a service without a server.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod endpoint;
pub mod metrics;
pub(crate) mod process;
pub(crate) mod reference;
pub(crate) mod request;
#[cfg(feature = "testing")]
pub mod testing;

pub(crate) use crate::kernel::admission::cors::cross_origin_error;
pub use crate::kernel::answer::reply::{Answer, AnswerKind, Output, Versioned};
pub use crate::kernel::answer::reply::{Content, Reply};
pub use crate::kernel::endpoint::definition::{Endpoint, Shape, with_tag};
pub use admission::identify::{Identify, ServiceKeyOnly, default_caller, known_caller};
pub(crate) use admission::identify::{UNAUTHENTICATED, is_unauthenticated};
pub use admission::limiter::{MemoryRateLimiter, SharedLimiter};
pub(crate) use answer::asset::{JAVASCRIPT, Stylesheet, asset_reply, version_of};
pub use answer::envelope::ErrorPages;
pub(crate) use answer::envelope::error_body;
pub use answer::envelope::status_of;
pub use answer::envelope::{ErrorStyle, error_response};
pub use answer::feed::{
    EVENT_HEARTBEAT, EventBatch, Feed, FeedState, FeedSubscription, LAST_EVENT_ID,
};
pub use answer::jwk::JsonWebKey;
pub use answer::lists::{
    CountedList, Data, ListP1, ListP2, ListP3, ListP4, ListP5, PaginationP1, Success,
};
pub use answer::long_poll::{Wait, WaitQuery, WaitTarget};
pub use answer::media::{
    Event, EventStream, Html, JsonOrEvents, JsonOrPage, Media, MediaStream, PageOr, Redirect,
    RedirectOr, StandalonePage,
};
pub(crate) use answer::media::{SCRIPT_POLICY, form_policy};
pub(crate) use answer::page_parts::{alert, day, moment, notice};
pub use endpoint::handler::{PlainHandler, UnitHandler, UploadHandler};
pub use endpoint::handler::{WithState, with};
pub use endpoint::metrics_service::MetricsService;
pub use endpoint::row::{Row, delete, get, patch, post, put};
pub use endpoint::scope::{BySession, CallerScope, OnOrganization, OnPlatform, OpenScope};
pub use endpoint::service::{Service, ServiceBuilder};
pub use endpoint::service_error::ServiceError;
pub use endpoint::two_part_handler::{DetachedCx, FirstPart};
pub use endpoint::use_case::{
    Addressed, CallsUseCase, Followed, TakesContext, TakesNoContext, UseCase, call, call_with_body,
    call_with_id, call_with_id_and_body, call_with_id_and_query, call_with_query,
};
pub use process::app::App;
pub use process::in_flight::InFlight;
pub use process::open_streams::OpenStreams;
pub use process::options::{BodyTimes, MAX_BODY_BYTES, ServiceOptions};
pub use process::request_effects::record_effects;
pub(crate) use process::service_key::TokenDigest;
pub use process::service_key::{ServiceKey, ServiceKeyError};
pub use process::signals::{AccessSignal, JobSignal, SealSignal};
pub use process::store_check::StoreCheck;
pub(crate) use process::tracer::{CurrentTrace, start_client_span, with_trace};
pub use process::tracer::{OpenSpan, Tracer};
pub use request::body::TimedBody;
pub use request::body::{Body, bytes_body, empty_body, read_body};
pub use request::body::{BodyTimeout, BoxError};
pub(crate) use request::client::own_value;
pub use request::client::request_id;
pub use request::client::{ClientIp, ForwardedPrefix, PeerAddr, ViaGateway};
pub use request::context::Cx;
pub(crate) use request::credentials::presented_api_key;
pub use request::draining::{Draining, Stopping};
pub use request::dry_run::{DryRunQuery, DryRunResponse};
pub(crate) use request::idempotency_key::KEY_PATTERN;
pub use request::input::{Input, PathParams, RawInput, ReasonBody, Unparsed};
pub use request::json::parse_strict;
pub(crate) use request::media_types::HTML;
pub(crate) use request::origin::{ensure_trusted_form, invalid_origin};
pub(crate) use request::shown_path::{shown_method, shown_path};
