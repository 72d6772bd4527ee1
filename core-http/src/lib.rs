//! The HTTP interface of the Platform Control API Suite, as tower services.
//!
//! The crate turns the use cases of `core-domain` into HTTP endpoints. It contains six services (registry,
//! provisioning, IAM, CLI service, billing and stack registry), the gateway in front of them, and an HTTP/1.1 server. A service
//! is a table of typed endpoint rows. The rows define routing, authorization, validation, idempotency, the error
//! envelope and the OpenAPI document.
//!
//! # Modules
//! - [`kernel`]: everything about HTTP that does not belong to one service: endpoint rows, router, authentication,
//!   JSON, errors, lists, idempotency, rate limits, event streams, OpenAPI.
//! - [`gateway`]: the public entry point. Authenticates callers, limits rates, checks suspension, and forwards requests
//!   to the services.
//! - [`iam`]: sign-up, sign-in, sessions, organizations, permissions, API keys, OAuth, service tokens.
//! - [`registry`]: platforms, entities, resources, features, builds, stacks, DNS records, custom domains,
//!   configuration, deployments, audit, change feed, webhooks, onboarding.
//! - [`provisioning`]: jobs, the dead-letter queue, holds.
//! - [`cli`]: upload of built sites, and the status of their deployments.
//! - [`billing`]: plans, customers, payment methods, subscriptions, invoices, credits.
//! - [`stacks`]: stack templates and their versions.
//! - [`serve()`]: the server, with connection limits, time limits and graceful shutdown.
//!
//! # How a service is built and served
//! Each service module has two functions. `endpoints(..)` returns its table, and `service(..)` builds a
//! [`kernel::Service`] from it. [`kernel::App`] contains the ports and settings, and is shared by all services of a
//! process. A service implements `tower::Service`. A server can serve it, a [`gateway::Gateway`] can forward requests
//! to it, and a test can call it directly.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use core_http::kernel::App;
//! use core_http::{ServeOptions, registry, serve};
//! use tokio::net::TcpListener;
//!
//! async fn run(app: Arc<App>) -> Result<(), Box<dyn std::error::Error>> {
//!     let service = registry::service(app)?;
//!     let listener = TcpListener::bind("127.0.0.1:8081").await?;
//!     let shutdown = std::future::pending();
//!     serve(listener, service, shutdown, ServeOptions::default()).await?;
//!     Ok(())
//! }
//! ```
//!
//! To serve everything on one port, give the services to a gateway: [`gateway::InProcess`] calls a service of this
//! process, and [`gateway::HttpUpstream`] calls a service over HTTP.
//!
//! # How to add an endpoint
//! 1. Write the use case and its command in `core-domain`. The command is the body of the request and defines its
//!    schema. The stored record is the response. Define a struct in this crate only for a query, or for a response with
//!    computed values.
//! 2. Add a row to `rows()` at the top of the module of its aggregate, for example `registry/entity.rs`, with a summary
//!    and a description. The row calls the use case with the parts of the request that it takes
//!    ([`kernel::call_with_id`] and its siblings). Its result is the answer, or [`map`](kernel::CallsUseCase::map)
//!    converts it. The scope of the use case tells the row which callers are authorized. It is opened before the use
//!    case runs.
//! 3. If the input needs conversion first, write a handler function in the same module:
//!    `async fn(cx: &Cx, scope: Scope, uow: &mut dyn UnitOfWork, input: Input<Path, Query, Body>) -> Result<Answer>`.
//!    `Path` is a tuple of typed ids; `()` stands for no path, query or body.
//!
//! ```
//! use core_domain::access::PlatformScope;
//! use core_domain::kernel::{Code, EntityId, PlatformId, Result, permission};
//! use core_domain::port::UnitOfWork;
//! use core_domain::registry::DeleteEntity;
//! use core_domain::use_case::registry::entity;
//! use core_http::kernel::{
//!     Cx, Endpoint, Input, Output, Success, call_with_body, call_with_query, delete, get, post,
//!     with_tag,
//! };
//! use http::StatusCode;
//!
//! const ALL: &str = "/api/v1/platforms/{platformId}/entities";
//! const ONE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}";
//!
//! pub fn endpoints() -> Vec<Endpoint> {
//!     let rows = vec![
//!         get(ALL, "listEntities")
//!             .summary("Lists the entities of a platform, newest first.")
//!             .description("Deleted entities are left out.")
//!             .reads(call_with_query(entity::list)),
//!         post(ALL, "createEntity")
//!             .summary("Creates an entity.")
//!             .success(&[StatusCode::CREATED])
//!             .refuses(&[Code::SlugTaken])
//!             .writes(call_with_body(entity::create)),
//!         delete(ONE, "deleteEntity")
//!             .summary("Deletes an entity.")
//!             .if_match()
//!             .writes(remove),
//!     ];
//!     with_tag("Entities", rows)
//! }
//!
//! async fn remove(
//!     cx: &Cx,
//!     scope: PlatformScope<permission::EntityWrite>,
//!     uow: &mut dyn UnitOfWork,
//!     input: Input<(PlatformId, EntityId), DeleteEntity>,
//! ) -> Result<Output<Success>> {
//!     entity::delete(cx, &scope, uow, &input.path.1, input.query.cascade).await?;
//!     Ok(Output::new(Success::YES))
//! }
//! # endpoints();
//! ```
//!
//! The kernel adds the following around the handler: request id, routing by every spelling of the path, rate limits,
//! authentication, and authorization by the scope. It parses JSON strictly and reports all violations in one 400. It
//! opens the unit of work, runs it again after a conflict, and commits it. It also handles idempotency keys, `ETag`,
//! `If-Match` and 304, error envelopes, panics, and OpenAPI.
//!
//! # Responses and errors
//! A handler returns one of these types:
//!
//! - `Stored<R>`: a record with its `ETag`. `Page<Stored<R>>` and `Vec<Stored<R>>`: lists.
//! - [`kernel::Output`]: any other JSON. [`kernel::Versioned`]: the same with an `ETag`. `()`: 204.
//! - [`kernel::Media`], [`kernel::MediaStream`], [`kernel::EventStream`], [`kernel::Redirect`] and [`kernel::Html`]:
//!   responses that are not JSON.
//! - [`kernel::JsonOrEvents`]: JSON or server-sent events, as the client requests.
//!
//! A response that only reports what would happen rolls back the unit of work of its handler
//! ([`kernel::Answer::dry_run`]). A stream of events is produced from a [`kernel::Feed`].
//!
//! Errors are those of the domain. The HTTP status of each code is in `kernel/status.rs`. Every operation on the store
//! can fail; the `# Errors` sections do not repeat this.
//!
//! # Other kinds of handlers
//! - `.plain(handler)`: for slow work, such as hashing or calls to other systems, which must not run in a unit of work.
//!   The handler opens its units itself.
//! - `.waits(handler, wait_target)`: a `GET` with the query parameter `wait`.
//! - `.uploads(handler)`: receives the request body unread.
//! - [`kernel::with`] passes settings or ports of the service to a handler.
//!
//! # How to add a service
//! Add a module with `pub fn endpoints() -> Vec<Endpoint>` and a function that builds the [`kernel::Service`]. Paths in
//! rows are the documented ones. `.mount("/api/v1/stacks", "")` also accepts paths from which a gateway has removed
//! this prefix.

pub mod billing;
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
