//! The tower services of the Platform Control API Suite: typed endpoint table, router, gateway layers, OpenAPI.
//!
//! # How to add an endpoint
//! 1. The use case and its command are in `core-domain`: the command is the body of the request and brings its schema; the
//!    record is the answer. A struct of your own stands here only for queries, and for answers that show something computed.
//! 2. Write the handler beside the others of its aggregate (`registry/entity.rs`):
//!    `async fn(cx: &Cx, scope: Scope, uow: &mut dyn UnitOfWork, input: Input<Path, Query, Body>) -> Result<Answer>`, one call of
//!    a use case. `Path` is a tuple of typed ids; `()` stands for none. The scope is opened before the handler is called: the
//!    row learns from it who is let in.
//! 3. Add its row to `rows()` at the top of the file.
//!
//! ```
//! use core_domain::access::PlatformScope;
//! use core_domain::kernel::{Code, EntityId, ListQuery, Page, PlatformId, Result, Stored, grant};
//! use core_domain::port::UnitOfWork;
//! use core_domain::registry::{CreateEntity, Entity, EntityFilter, UpdateEntity};
//! use core_domain::use_case::registry::entity;
//! use core_http::kernel::{Cx, Endpoint, Input, get, patch, post, tagged};
//! use http::StatusCode;
//!
//! async fn list(
//!     cx: &Cx,
//!     scope: PlatformScope<grant::EntityRead>,
//!     uow: &mut dyn UnitOfWork,
//!     input: Input<(PlatformId,), ListQuery<EntityFilter>>,
//! ) -> Result<Page<Stored<Entity>>> {
//!     entity::list(cx, &scope, uow, &input.query).await
//! }
//!
//! async fn create(
//!     cx: &Cx,
//!     scope: PlatformScope<grant::EntityWrite>,
//!     uow: &mut dyn UnitOfWork,
//!     input: Input<(PlatformId,), (), CreateEntity>,
//! ) -> Result<Stored<Entity>> {
//!     entity::create(cx, &scope, uow, input.body).await
//! }
//!
//! async fn update(
//!     cx: &Cx,
//!     scope: PlatformScope<grant::EntityWrite>,
//!     uow: &mut dyn UnitOfWork,
//!     input: Input<(PlatformId, EntityId), (), UpdateEntity>,
//! ) -> Result<Stored<Entity>> {
//!     entity::update(cx, &scope, uow, &input.path.1, input.body).await
//! }
//!
//! pub fn endpoints() -> Vec<Endpoint> {
//!     let rows = vec![
//!         get("/api/v1/platforms/{platformId}/entities", "listEntities")
//!             .summary("Lists a platform's entities, newest first.")
//!             .reads(list),
//!         post("/api/v1/platforms/{platformId}/entities", "createEntity")
//!             .success(&[StatusCode::CREATED])
//!             .refuses(&[Code::SlugTaken])
//!             .writes(create),
//!         patch("/api/v1/platforms/{platformId}/entities/{entityId}", "updateEntity")
//!             .if_match()
//!             .writes(update),
//!     ];
//!     tagged("Entities", rows)
//! }
//! # endpoints();
//! ```
//!
//! What the layer does around the handler: request id, routing in every spelling, rate limits, caller, scope, strict JSON, all
//! violations in one 400, unit of work with re-run and commit, idempotency keys, `ETag`, `If-Match` and 304, envelope, panics,
//! OpenAPI.
//!
//! What a handler answers: `Stored<R>` is a record with its `ETag`, `Page<Stored<R>>` and `Vec<Stored<R>>` are lists;
//! [`kernel::Output`] is any other JSON, [`kernel::Versioned`] one with an `ETag`, `()` is 204; [`kernel::Media`],
//! [`kernel::MediaStream`], [`kernel::EventStream`], [`kernel::Redirect`] and [`kernel::Html`] are no JSON;
//! [`kernel::JsonOrEvents`] is whatever the client asks for. Errors are the domain's; a new code gets its status in
//! `kernel/status.rs`. An answer that only tells what would happen undoes the unit of its handler ([`kernel::Answer::dry_run`]).
//! Who follows something that goes on is answered a [`kernel::Feed`].
//!
//! Slow work (hashing, calls outside) has no place in a unit: end the row with `.plain(handler)`, whose handler takes no unit
//! and opens its own. A `GET` with `wait` ends with `.waits(handler, ended)`. Uploads end with `.uploads(handler)`. A handler
//! that needs settings or ports of its service is given them by [`kernel::with`].
//!
//! # How to add a service
//! A folder with `pub fn endpoints() -> Vec<Endpoint>` and a function that makes the [`kernel::Service`]: paths are the
//! documented ones, and `.mount("/api/v1/stacks", "")` adds the spelling that remains behind the gateway.

pub mod cli;
pub mod gateway;
pub mod iam;
pub mod kernel;
mod platform_status;
pub mod provisioning;
pub mod registry;
mod serve;
pub mod stacks;

pub use serve::{IncomingBody, ServeOptions, serve};
