//! Endpoints: rows with their handlers, type-erased.
//!
//! [`Row::reads`], [`Row::writes`] and their siblings complete a row with a handler. They turn the typed handler into a
//! closure over the parsed request, and compile the schemas of its types.

use std::sync::Arc;

use core_domain::access::{AuditEvent, Requirement};
use core_domain::gateway::RateClass;
use core_domain::kernel::Result;
use core_domain::port::{Mode, UnitOfWork};
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::handler::{PlainHandler, UnitHandler, UploadHandler};
use super::row::Row;
use super::scope::{CallerScope, OpenScope};
use super::service_error::ServiceError;
use super::shapes::Shapes;
use super::two_part_handler::TwoParts;
use crate::kernel::admission::idempotency::{Progress, find_stored};
use crate::kernel::answer::long_poll::{WaitQuery, WaitTarget};
use crate::kernel::answer::reply::{Answer, Reply};
use crate::kernel::request::body::Body;
use crate::kernel::request::context::Cx;
use crate::kernel::request::input::{Input, PathParams, RawInput};
use crate::kernel::request::media_types::EVENT_STREAM;
use crate::kernel::request::parse::ParsedRequest;

/// A type-erased handler that runs in a unit of work.
pub(crate) type UnitRun = dyn for<'a> Fn(
        &'a Cx,
        &'a mut (dyn UnitOfWork + 'a),
        &'a ParsedRequest,
        &'a Progress,
    ) -> BoxFuture<'a, Result<HandlerOutcome>>
    + Send
    + Sync;
/// A type-erased handler that opens its units of work itself.
type PlainRun =
    dyn for<'a> Fn(&'a Cx, &'a ParsedRequest) -> BoxFuture<'a, Result<Reply>> + Send + Sync;
/// A type-erased handler that reads the request body itself.
type UploadRun =
    dyn for<'a> Fn(&'a Cx, &'a ParsedRequest, Body) -> BoxFuture<'a, Result<Reply>> + Send + Sync;

/// The outcome of a handler that ran in a unit of work.
pub(crate) struct HandlerOutcome {
    pub(crate) reply: Reply,
    /// The change that a long poll waits for before it replies. Always [`WaitTarget::Nothing`] for other rows.
    pub(crate) wait_target: WaitTarget,
    /// The audit event of a dry run; `None` if the handler executed the request.
    pub(crate) dry_run: Option<AuditEvent>,
    /// Whether the reply is the stored response to an earlier request with the same idempotency key.
    pub(crate) is_replay: bool,
}

impl HandlerOutcome {
    /// Creates the outcome for a stored response.
    pub(crate) const fn replay(reply: Reply) -> Self {
        Self {
            reply,
            wait_target: WaitTarget::Nothing,
            dry_run: None,
            is_replay: true,
        }
    }

    /// Returns whether the unit of work made the change that the reply reports, so that it must be committed.
    pub(crate) const fn has_happened(&self) -> bool {
        self.dry_run.is_none() && !self.is_replay
    }
}

/// The handler of a row, type-erased.
#[derive(Clone)]
pub(crate) enum Handler {
    /// Runs once in a unit of work of this mode.
    Unit(Mode, Arc<UnitRun>),
    /// Reads a page of a list.
    List(ListRuns),
    /// Reads repeatedly, each time in a new unit of work, until a condition holds or the time is up.
    Waits(Arc<UnitRun>),
    /// Runs in a unit of work, and then outside of one.
    TwoParts(TwoParts),
    /// Opens its units of work itself.
    Plain(Arc<PlainRun>),
    /// Opens its units of work and reads the body itself.
    Upload(Arc<UploadRun>),
}

/// A handler that reads a page of a list, from the primary or from a replica.
#[derive(Clone)]
pub(crate) struct ListRuns {
    /// The mode of the unit of work on the primary.
    pub(crate) mode: Mode,
    pub(crate) on_primary: Arc<UnitRun>,
    /// Authorizes the caller in a unit of its own on the primary, so that a stale replica never grants access.
    pub(crate) on_replica: Arc<UnitRun>,
}

// Closures that pass through these functions are inferred to be valid for every lifetime.
fn unit_run<F>(run: F) -> Arc<UnitRun>
where
    F: for<'a> Fn(
            &'a Cx,
            &'a mut (dyn UnitOfWork + 'a),
            &'a ParsedRequest,
            &'a Progress,
        ) -> BoxFuture<'a, Result<HandlerOutcome>>
        + Send
        + Sync
        + 'static,
{
    Arc::new(run)
}

fn plain_run<F>(run: F) -> Arc<PlainRun>
where
    F: for<'a> Fn(&'a Cx, &'a ParsedRequest) -> BoxFuture<'a, Result<Reply>>
        + Send
        + Sync
        + 'static,
{
    Arc::new(run)
}

fn upload_run<F>(run: F) -> Arc<UploadRun>
where
    F: for<'a> Fn(&'a Cx, &'a ParsedRequest, Body) -> BoxFuture<'a, Result<Reply>>
        + Send
        + Sync
        + 'static,
{
    Arc::new(run)
}

/// A type that can be the query or the body of a request.
pub trait Shape: DeserializeOwned + JsonSchema + Send + Sync + 'static {}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Shape for T {}

impl Row {
    /// Completes the row with a handler that reads. Its unit of work sees one consistent state of the store and is
    /// rolled back afterwards.
    #[must_use]
    pub fn reads<S, P, Q, B, A, H>(self, handler: H) -> Endpoint
    where
        S: OpenScope<Input<P, Q, B>>,
        P: PathParams,
        Q: Shape,
        B: Shape,
        A: Answer,
        H: for<'a> UnitHandler<'a, S, P, Q, B, A>,
    {
        self.in_unit(Mode::Read, handler)
    }

    /// Like [`Self::reads`], but without a transaction. For handlers that run a single query, or queries that need not
    /// see the same state of the store.
    #[must_use]
    pub fn reads_once<S, P, Q, B, A, H>(self, handler: H) -> Endpoint
    where
        S: OpenScope<Input<P, Q, B>>,
        P: PathParams,
        Q: Shape,
        B: Shape,
        A: Answer,
        H: for<'a> UnitHandler<'a, S, P, Q, B, A>,
    {
        self.in_unit(Mode::Auto, handler)
    }

    /// Completes the row with a handler that writes. The change, its audit entries, the response stored for the
    /// idempotency key, and the outbox are committed together.
    ///
    /// The handler runs again if its unit of work conflicts with another one, so it must have no effects outside of it.
    /// If it returns the plan of a dry run ([`Answer::dry_run`]), nothing that it wrote is committed.
    #[must_use]
    pub fn writes<S, P, Q, B, A, H>(self, handler: H) -> Endpoint
    where
        S: OpenScope<Input<P, Q, B>>,
        P: PathParams,
        Q: Shape,
        B: Shape,
        A: Answer,
        H: for<'a> UnitHandler<'a, S, P, Q, B, A>,
    {
        self.in_unit(Mode::Write, handler)
    }

    /// Completes the row with a long poll. The handler reads repeatedly, each time in a new unit of work, until
    /// `wait_target` returns [`WaitTarget::Nothing`] for its answer or the time of the query parameter `wait` is up.
    #[must_use]
    pub fn waits<S, P, B, A, H>(self, handler: H, wait_target: fn(&A) -> WaitTarget) -> Endpoint
    where
        S: OpenScope<Input<P, WaitQuery, B>>,
        P: PathParams,
        B: Shape,
        A: Answer,
        H: for<'a> UnitHandler<'a, S, P, WaitQuery, B, A>,
    {
        let run = run_in_unit(Arc::new(handler), wait_target);
        Endpoint::new::<P, WaitQuery, B, A>(self, S::REQUIREMENT, Handler::Waits(run))
    }

    fn in_unit<S, P, Q, B, A, H>(self, mode: Mode, handler: H) -> Endpoint
    where
        S: OpenScope<Input<P, Q, B>>,
        P: PathParams,
        Q: Shape,
        B: Shape,
        A: Answer,
        H: for<'a> UnitHandler<'a, S, P, Q, B, A>,
    {
        let handler = Arc::new(handler);
        let run = run_in_unit(Arc::clone(&handler), |_| WaitTarget::Nothing);
        let handler = match mode {
            Mode::Auto | Mode::Read if takes_cursors::<Q>() => Handler::List(ListRuns {
                mode,
                on_primary: run,
                on_replica: run_on_replica(handler),
            }),
            _ => Handler::Unit(mode, run),
        };
        Endpoint::new::<P, Q, B, A>(self, S::REQUIREMENT, handler)
    }

    /// Completes the row with a handler that receives no unit of work, because it does slow work (hashing, calls to
    /// other systems). It opens its units with [`core_domain::port::transact`] on `cx.app.store`. Such a row does not
    /// accept idempotency keys.
    #[must_use]
    pub fn plain<S, P, Q, B, A, H>(self, handler: H) -> Endpoint
    where
        S: CallerScope,
        P: PathParams,
        Q: Shape,
        B: Shape,
        A: Answer,
        H: for<'a> PlainHandler<'a, S, P, Q, B, A>,
    {
        let handler = Arc::new(handler);
        let run = plain_run(move |cx, parsed| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let scope = S::open(cx)?;
                let answer = handler.call(cx, scope, parsed.input()?).await?;
                answer.reply(cx.success)
            })
        });
        Endpoint::new::<P, Q, B, A>(self, S::REQUIREMENT, Handler::Plain(run))
    }

    /// Like [`Self::plain`], with a scope that reads the store. The unit of work that authorizes the caller has ended
    /// when the handler starts. For handlers that need several units, or that read for longer than a unit should last.
    #[must_use]
    pub fn plain_with_scope<S, P, Q, B, A, H>(self, handler: H) -> Endpoint
    where
        S: OpenScope<Input<P, Q, B>>,
        P: PathParams,
        Q: Shape,
        B: Shape,
        A: Answer,
        H: for<'a> PlainHandler<'a, S, P, Q, B, A>,
    {
        let handler = Arc::new(handler);
        let run = plain_run(move |cx, parsed| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let input: Input<P, Q, B> = parsed.input()?;
                let scope = authorize_in_own_unit(cx, &input).await?;
                let answer = handler.call(cx, scope, input).await?;
                answer.reply(cx.success)
            })
        });
        Endpoint::new::<P, Q, B, A>(self, S::REQUIREMENT, Handler::Plain(run))
    }

    /// Completes the row with a handler that receives the body unread, after the caller has been authorized.
    ///
    /// The handler stores idempotency keys itself, see [`Cx::idempotency_key`]. If the authorization must still hold
    /// when the handler writes, it has to open the scope again in the unit of work of the write.
    #[must_use]
    pub fn uploads<S, P, Q, A, H>(self, handler: H) -> Endpoint
    where
        S: OpenScope<Input<P, Q>>,
        P: PathParams,
        Q: Shape,
        A: Answer,
        H: for<'a> UploadHandler<'a, S, P, Q, A>,
    {
        let handler = Arc::new(handler);
        let run = upload_run(move |cx, parsed, body| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let input: Input<P, Q> = parsed.input()?;
                let scope: S = authorize_in_own_unit(cx, &input).await?;
                let input = RawInput {
                    path: input.path,
                    query: input.query,
                    body,
                };
                let answer = handler.call(cx, scope, input).await?;
                answer.reply(cx.success)
            })
        });
        Endpoint::new::<P, Q, (), A>(self, S::REQUIREMENT, Handler::Upload(run))
    }
}

/// Authorizes the caller in a separate unit of work.
async fn authorize_in_own_unit<I, S: OpenScope<I>>(cx: &Cx, input: &I) -> Result<S> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let scope = S::open(cx, uow.as_mut(), input).await;
    uow.rollback().await;
    scope
}

/// Wraps a handler of a unit of work: parses the input, authorizes the caller, and looks for a stored response.
///
/// If there is one, the handler still runs, unless the row ends access. Its own checks can then withhold the response
/// from a caller who may no longer see it. Its answer is dropped, and the unit of work is not committed.
fn run_in_unit<S, P, Q, B, A, H>(handler: Arc<H>, wait_target: fn(&A) -> WaitTarget) -> Arc<UnitRun>
where
    S: OpenScope<Input<P, Q, B>>,
    P: PathParams,
    Q: Shape,
    B: Shape,
    A: Answer,
    H: for<'a> UnitHandler<'a, S, P, Q, B, A>,
{
    unit_run(move |cx, uow, parsed, progress| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let input: Input<P, Q, B> = parsed.input()?;
            let scope = S::open(cx, uow, &input).await;
            let claim = progress.claim();
            let (stored, scope) = find_stored(cx, uow, claim, scope).await?;
            if let (Some(claim), Some(stored)) = (claim, stored) {
                if let Ok(scope) = scope
                    && !claim.ends_access()
                    && let Err(error) = handler.call(cx, scope, uow, input).await
                    && claim.must_withhold(&error)
                {
                    return Err(error);
                }
                return Ok(HandlerOutcome::replay(stored.reply));
            }
            let scope = scope?;
            progress.note_let_in();
            let answer = handler.call(cx, scope, uow, input).await;
            progress.note_unit(uow);
            let answer = answer?;
            Ok(HandlerOutcome {
                wait_target: wait_target(&answer),
                dry_run: answer.dry_run(),
                reply: answer.reply(cx.success)?,
                is_replay: false,
            })
        })
    })
}

/// Wraps a handler that reads a page of a list in a unit of work on a replica.
fn run_on_replica<S, P, Q, B, A, H>(handler: Arc<H>) -> Arc<UnitRun>
where
    S: OpenScope<Input<P, Q, B>>,
    P: PathParams,
    Q: Shape,
    B: Shape,
    A: Answer,
    H: for<'a> UnitHandler<'a, S, P, Q, B, A>,
{
    unit_run(move |cx, uow, parsed, _| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let input: Input<P, Q, B> = parsed.input()?;
            let scope = authorize_in_own_unit(cx, &input).await?;
            let answer = handler.call(cx, scope, uow, input).await?;
            Ok(HandlerOutcome {
                wait_target: WaitTarget::Nothing,
                dry_run: None,
                reply: answer.reply(cx.success)?,
                is_replay: false,
            })
        })
    })
}

/// Returns whether a query has a `cursor`: the endpoint returns a page of a list.
fn takes_cursors<Q: Shape>() -> bool {
    let schema = schemars::schema_for!(Q);
    schema.pointer("/properties/cursor").is_some()
}

/// An endpoint: a row with its handler. An entry of a service's table.
pub struct Endpoint {
    pub(crate) row: Row,
    /// The compiled schemas, or the reason why one could not be compiled.
    shapes: std::result::Result<Shapes, String>,
    pub(crate) handler: Handler,
    requirement: Requirement,
    /// The content types of a success.
    content_types: Vec<&'static str>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

/// Puts endpoints under a tag, which is a section of the OpenAPI document.
#[must_use]
pub fn with_tag(tag: &'static str, mut rows: Vec<Endpoint>) -> Vec<Endpoint> {
    for endpoint in &mut rows {
        endpoint.row.tag = tag;
    }
    rows
}

impl Endpoint {
    pub(super) fn new<P, Q, B, A>(row: Row, requirement: Requirement, handler: Handler) -> Self
    where
        P: PathParams,
        Q: Shape,
        B: Shape,
        A: Answer,
    {
        let kind = A::kind();
        let known = kind.content_type.into_iter();
        let known = known.chain(kind.events.map(|_| EVENT_STREAM));
        Self {
            content_types: known.chain(row.produces.iter().copied()).collect(),
            row,
            requirement,
            shapes: Shapes::of::<P, Q, B, A>(),
            handler,
        }
    }

    /// Returns the HTTP method. An endpoint of `GET` also responds to `HEAD`.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.row.method
    }

    /// Returns the documented path, with parameters in braces: `/api/v1/platforms/{platformId}`.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.row.path
    }

    /// Returns the documented path and its aliases.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.row.path).chain(self.row.aliases.iter().copied())
    }

    /// Returns the operation id of OpenAPI, which is unique within a service.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.row.operation
    }

    /// Returns the requirement on the caller, which the type of the handler's scope defines.
    #[must_use]
    pub const fn requirement(&self) -> Requirement {
        self.requirement
    }

    /// Returns the rate class, which selects the quota of a client.
    #[must_use]
    pub fn rate_class(&self) -> RateClass {
        self.row.rate
    }

    /// Returns the success statuses; the first one is the default.
    #[must_use]
    pub fn success(&self) -> &[StatusCode] {
        &self.row.success
    }

    /// Returns whether the endpoint honours `If-Match`.
    #[must_use]
    pub const fn honours_if_match(&self) -> bool {
        self.row.if_match
    }

    /// Returns whether the handler receives the body unread.
    #[must_use]
    pub fn takes_uploads(&self) -> bool {
        matches!(self.handler, Handler::Upload(_))
    }

    /// Returns whether the endpoint accepts `Idempotency-Key`. Endpoints that write do, unless they accept anonymous
    /// callers.
    #[must_use]
    pub fn takes_idempotency_keys(&self) -> bool {
        let writes = matches!(
            self.handler,
            Handler::Unit(Mode::Write, _) | Handler::TwoParts(_)
        );
        writes && self.row.method != Method::GET && self.requirement != Requirement::Public
    }

    /// Returns the content types of a success.
    pub(crate) fn content_types(&self) -> &[&'static str] {
        &self.content_types
    }

    /// Returns the compiled schemas of input and output.
    ///
    /// # Errors
    /// [`ServiceError::Schema`] if a schema cannot be compiled.
    pub(crate) fn shapes(&self) -> std::result::Result<&Shapes, ServiceError> {
        let broken = |why: &String| ServiceError::Schema(self.row.operation, why.clone());
        self.shapes.as_ref().map_err(broken)
    }

    /// Returns the first success status.
    pub(crate) fn first_success(&self) -> StatusCode {
        self.row.success.first().copied().unwrap_or(StatusCode::OK)
    }
}
