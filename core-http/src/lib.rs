//! The tower services of the Platform Control API Suite: typed endpoint table, router, gateway layers, OpenAPI.
//!
//! # How to add an endpoint
//! 1. Write a shape for the query and the body, if there are any: a struct with `Deserialize` and `JsonSchema`. Its schema is
//!    what requests are checked against, so lengths, patterns and defaults are written there alone. Domain types
//!    (`Slug`, `Email`, `Environment`, typed ids) bring their own schema.
//! 2. Write a shape for the answer: a struct with `Serialize` and `JsonSchema`, made from the domain's record.
//! 3. Write the handler: `async fn(cx: &Cx, uow: &mut dyn UnitOfWork, input: Input<Path, Query, Body>) -> Result<Output<T>>`.
//!    Two to ten lines: call one use case, shape the answer. `Path` is a tuple of typed ids; `()` stands for none.
//! 4. Add one row to the service's table.
//!
//! ```
//! use core_domain::kernel::{Code, PlatformId, Result, Slug};
//! use core_domain::port::UnitOfWork;
//! use core_http::kernel::{Access, Cx, Endpoint, Input, Limit, Output, get, post};
//! use http::StatusCode;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Which {
//!     #[serde(default)]
//!     limit: Limit,
//!     cursor: Option<String>,
//! }
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(rename_all = "camelCase")]
//! struct NewThing {
//!     slug: Slug,
//!     #[schemars(length(min = 1, max = 128))]
//!     display_name: String,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! struct Thing {
//!     slug: Slug,
//! }
//!
//! async fn create(
//!     cx: &Cx,
//!     uow: &mut dyn UnitOfWork,
//!     input: Input<(PlatformId,), (), NewThing>,
//! ) -> Result<Output<Thing>> {
//!     let (_platform,) = input.path;
//!     cx.caller.signed_in()?;
//!     let _now = uow.now().await?;
//!     Ok(Output::new(Thing { slug: input.body.slug }).version(1))
//! }
//!
//! async fn list(_: &Cx, _: &mut dyn UnitOfWork, input: Input<(), Which>) -> Result<Output<Vec<Thing>>> {
//!     let _page = core_http::kernel::page_request(input.query.limit.0, input.query.cursor);
//!     Ok(Output::new(Vec::new()))
//! }
//!
//! pub fn endpoints() -> Vec<Endpoint> {
//!     vec![
//!         get("/api/v1/things", "listThings").reads(list),
//!         post("/api/v1/platforms/{platformId}/things", "createThing")
//!             .summary("Makes a thing.")
//!             .access(Access::Signed)
//!             .success(&[StatusCode::CREATED])
//!             .refuses(&[Code::SlugTaken])
//!             .writes(create),
//!     ]
//! }
//! # endpoints();
//! ```
//!
//! What the layer does around the handler: request id, routing in every spelling, caller, access class, strict JSON,
//! all violations in one 400, unit of work with re-run and commit, idempotency keys, `ETag` and 304, envelope, panics.
//!
//! What a handler still does:
//! - `Output::new(x).version(stored.version())` on single records; `cx.expects(&stored)?` in `PATCH`, `PUT` and `DELETE`
//!   after reading the record obeys `If-Match`.
//! - `Output<()>` is 204; `.status(..)` picks another of the row's success statuses.
//! - Fields that a `PATCH` may unset are [`kernel::Patch`]; lists are [`kernel::ListP1`], [`kernel::ListP2`], [`kernel::ListP4`] or
//!   [`kernel::Counted`].
//! - Errors are the domain's; a new code gets its status in `kernel/status.rs`.
//!
//! Slow work (hashing, calls outside) has no place in a unit: end the row with `.plain(handler)`, an
//! `async fn(&Cx, Input<..>) -> Result<Output<T>>` that opens units with `core_domain::port::transact` on
//! `cx.app.store` and calls `cx.keep(uow, &output)` in the last one, which stores the answer for the idempotency key.
//! A `GET` with `wait` is such a row too: [`kernel::hold`] looks until what is seen has ended.
//! Uploads end with `.uploads(handler)`, an `async fn(&Cx, RawInput<P, Q>) -> Result<Output<T>>`.
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

pub use serve::serve;
