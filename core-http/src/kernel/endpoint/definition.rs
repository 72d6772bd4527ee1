//! A row with its handler: what the endpoint layer serves.

use std::sync::Arc;

use core_domain::access::{AuditEvent, Requirement};
use core_domain::gateway::RateClass;
use core_domain::kernel::Result;
use core_domain::port::{Mode, UnitOfWork};
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::context::Cx;
use super::handler::{PlainHandler, UnitHandler, UploadHandler};
use super::row::Row;
use super::scope::{CallerScope, OpenScope};
use super::service::ServiceError;
use super::shapes::Shapes;
use crate::kernel::admission::idempotency::{Progress, find_stored, withholds};
use crate::kernel::answer::long_poll::WaitQuery;
use crate::kernel::answer::media::EVENT_STREAM;
use crate::kernel::answer::reply::Answer;
use crate::kernel::answer::reply::Reply;
use crate::kernel::request::body::Body;
use crate::kernel::request::input::{Input, PathParams, RawInput};
use crate::kernel::request::parse::Parsed;

pub(crate) type UnitRun = dyn for<'a> Fn(
        &'a Cx,
        &'a mut (dyn UnitOfWork + 'a),
        &'a Parsed,
        &'a Progress,
    ) -> BoxFuture<'a, Result<Seen>>
    + Send
    + Sync;
type PlainRun = dyn for<'a> Fn(&'a Cx, &'a Parsed) -> BoxFuture<'a, Result<Reply>> + Send + Sync;
type UploadRun =
    dyn for<'a> Fn(&'a Cx, &'a Parsed, Body) -> BoxFuture<'a, Result<Reply>> + Send + Sync;

/// What a handler in a unit answered, and whether a request that waits has seen what it waits for.
pub(crate) struct Seen {
    pub(crate) reply: Reply,
    pub(crate) ended: bool,
    /// Of an answer that only tells what would happen.
    pub(crate) dry_run: Option<AuditEvent>,
    /// Whether it is an answer that was given before.
    pub(crate) is_replay: bool,
}

impl Seen {
    /// An answer that was given before.
    pub(crate) const fn stored(reply: Reply) -> Self {
        Self {
            reply,
            ended: true,
            dry_run: None,
            is_replay: true,
        }
    }

    /// Whether what the answer says has happened in this unit.
    pub(crate) const fn has_happened(&self) -> bool {
        self.dry_run.is_none() && !self.is_replay
    }
}

/// What a row does, type-erased.
#[derive(Clone)]
pub(crate) enum Handler {
    Unit(Mode, Arc<UnitRun>),
    Waits(Arc<UnitRun>),
    Plain(Arc<PlainRun>),
    Upload(Arc<UploadRun>),
}

// These tell the compiler that the closures hold for every lifetime.
fn unit_run<F>(run: F) -> Arc<UnitRun>
where
    F: for<'a> Fn(
            &'a Cx,
            &'a mut (dyn UnitOfWork + 'a),
            &'a Parsed,
            &'a Progress,
        ) -> BoxFuture<'a, Result<Seen>>
        + Send
        + Sync
        + 'static,
{
    Arc::new(run)
}

fn plain_run<F>(run: F) -> Arc<PlainRun>
where
    F: for<'a> Fn(&'a Cx, &'a Parsed) -> BoxFuture<'a, Result<Reply>> + Send + Sync + 'static,
{
    Arc::new(run)
}

fn upload_run<F>(run: F) -> Arc<UploadRun>
where
    F: for<'a> Fn(&'a Cx, &'a Parsed, Body) -> BoxFuture<'a, Result<Reply>> + Send + Sync + 'static,
{
    Arc::new(run)
}

/// A query or body of a request.
pub trait Shape: DeserializeOwned + JsonSchema + Send + Sync + 'static {}

impl<T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Shape for T {}

impl Row {
    /// Ends the row with a handler that reads: its unit sees one state of the store and is dropped afterwards.
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

    /// As [`Self::reads`], for a handler that asks the store one question or two that need not agree: no transaction is
    /// opened for it.
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

    /// Ends the row with a handler that writes: change, audit, idempotent answer and outbox are one commit. The handler
    /// is run again when the unit lost a race, so it must have no effect outside it. When it answers what would happen
    /// ([`Answer::dry_run`]), nothing of what it wrote is committed.
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

    /// Ends the row with a handler that reads, in a unit of its own each time, until what it saw has `ended` or the time
    /// that the query's `wait` allows is up.
    #[must_use]
    pub fn waits<S, P, B, A, H>(self, handler: H, ended: fn(&A) -> bool) -> Endpoint
    where
        S: OpenScope<Input<P, WaitQuery, B>>,
        P: PathParams,
        B: Shape,
        A: Answer,
        H: for<'a> UnitHandler<'a, S, P, WaitQuery, B, A>,
    {
        let run = run_in_unit(handler, ended);
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
        let run = run_in_unit(handler, |_| true);
        Endpoint::new::<P, Q, B, A>(self, S::REQUIREMENT, Handler::Unit(mode, run))
    }

    /// Ends the row with a handler that is given no unit, because it does slow work first (hashing, calls outside). It
    /// opens its units with [`core_domain::port::transact`] on `cx.app.store`. Such a row takes no idempotency keys.
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

    /// As [`Self::plain`], with a scope that asks the store: the unit that lets the caller in is over when the handler
    /// begins. For what takes several units, or reads for longer than one should last.
    #[must_use]
    pub fn scoped<S, P, Q, A, H>(self, handler: H) -> Endpoint
    where
        S: OpenScope<Input<P, Q>>,
        P: PathParams,
        Q: Shape,
        A: Answer,
        H: for<'a> PlainHandler<'a, S, P, Q, (), A>,
    {
        let handler = Arc::new(handler);
        let run = plain_run(move |cx, parsed| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let input: Input<P, Q> = parsed.input()?;
                let scope = let_in(cx, &input).await?;
                let answer = handler.call(cx, scope, input).await?;
                answer.reply(cx.success)
            })
        });
        Endpoint::new::<P, Q, (), A>(self, S::REQUIREMENT, Handler::Plain(run))
    }

    /// Ends the row with a handler of uploads: the body comes unread, once the caller was let in. The handler keeps
    /// idempotency keys itself, see [`Cx::idempotency_key`]. A scope that must still hold when the handler writes is
    /// opened again in the unit of the write.
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
                let scope: S = let_in(cx, &input).await?;
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

/// Lets the caller in, in a unit of its own.
async fn let_in<I, S: OpenScope<I>>(cx: &Cx, input: &I) -> Result<S> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let scope = S::open(cx, uow.as_mut(), input).await;
    uow.rollback().await;
    scope
}

fn run_in_unit<S, P, Q, B, A, H>(handler: H, ended: fn(&A) -> bool) -> Arc<UnitRun>
where
    S: OpenScope<Input<P, Q, B>>,
    P: PathParams,
    Q: Shape,
    B: Shape,
    A: Answer,
    H: for<'a> UnitHandler<'a, S, P, Q, B, A>,
{
    let handler = Arc::new(handler);
    unit_run(move |cx, uow, parsed, progress| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let input: Input<P, Q, B> = parsed.input()?;
            let scope = S::open(cx, uow, &input).await;
            let (stored, scope) = find_stored(cx, uow, scope).await?;
            if let (Some(claim), Some(stored)) = (&cx.claim, stored) {
                if let Ok(scope) = scope
                    && !cx.ends_access
                    && let Err(error) = handler.call(cx, scope, uow, input).await
                    && withholds(cx, &error, claim)
                {
                    return Err(error);
                }
                return Ok(Seen::stored(stored.reply));
            }
            let scope = scope?;
            progress.note_let_in();
            let answer = handler.call(cx, scope, uow, input).await;
            progress.note_unit(uow);
            let answer = answer?;
            Ok(Seen {
                ended: ended(&answer),
                dry_run: answer.dry_run(),
                reply: answer.reply(cx.success)?,
                is_replay: false,
            })
        })
    })
}

/// A row of the endpoint table, whole.
pub struct Endpoint {
    pub(crate) row: Row,
    shapes: std::result::Result<Shapes, String>,
    pub(crate) handler: Handler,
    requirement: Requirement,
    /// The content types of its answer.
    content_types: Vec<&'static str>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

/// Rows of one tag of OpenAPI.
#[must_use]
pub fn tagged(tag: &'static str, mut rows: Vec<Endpoint>) -> Vec<Endpoint> {
    for endpoint in &mut rows {
        endpoint.row.tag = tag;
    }
    rows
}

impl Endpoint {
    fn new<P, Q, B, A>(row: Row, requirement: Requirement, handler: Handler) -> Self
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

    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.row.method
    }

    /// The documented path.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.row.path
    }

    /// The documented path and its aliases.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.row.path).chain(self.row.aliases.iter().copied())
    }

    /// The operation id.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.row.operation
    }

    /// What is demanded of the caller.
    #[must_use]
    pub const fn requirement(&self) -> Requirement {
        self.requirement
    }

    /// The class by which the requests of a client are limited.
    #[must_use]
    pub fn rate_class(&self) -> RateClass {
        self.row.rate
    }

    /// The statuses of success.
    #[must_use]
    pub fn success(&self) -> &[StatusCode] {
        &self.row.success
    }

    /// Tells whether the row obeys `If-Match`.
    #[must_use]
    pub const fn obeys_if_match(&self) -> bool {
        self.row.if_match
    }

    /// Tells whether the row takes its body unread.
    #[must_use]
    pub fn takes_uploads(&self) -> bool {
        matches!(self.handler, Handler::Upload(_))
    }

    /// Tells whether the row stores its answer under the `Idempotency-Key` of a request: writes do whose callers are
    /// known.
    #[must_use]
    pub fn takes_idempotency_keys(&self) -> bool {
        let writes = matches!(self.handler, Handler::Unit(Mode::Write, _));
        writes && self.row.method != Method::GET && self.requirement != Requirement::Public
    }

    /// The content types of its answer.
    pub(crate) fn content_types(&self) -> &[&'static str] {
        &self.content_types
    }

    /// What the row takes and gives.
    ///
    /// # Errors
    /// [`ServiceError::Schema`] when one of its schemas cannot be compiled.
    pub(crate) fn shapes(&self) -> std::result::Result<&Shapes, ServiceError> {
        let broken = |why: &String| ServiceError::Schema(self.row.operation, why.clone());
        self.shapes.as_ref().map_err(broken)
    }

    /// The first success status.
    pub(crate) fn first_success(&self) -> StatusCode {
        self.row.success.first().copied().unwrap_or(StatusCode::OK)
    }
}
