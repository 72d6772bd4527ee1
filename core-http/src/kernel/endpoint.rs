//! The typed row of the endpoint table: everything there is to know about a route, in one place.

use std::sync::Arc;

use core_domain::kernel::Code;
use core_domain::port::Mode;
use http::{Method, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::Checker;
use super::handler::{Handler, plain_run, unit_run, upload_run};
use super::parse::is_unit;
use super::{
    Access, ErrorStyle, PathParams, PlainHandler, RawInput, Reply, UnitHandler, UploadHandler,
};

/// The content type of bytes nothing is known of.
const ANY_BYTES: &str = "application/octet-stream";

/// Writes the schema of a type into a generator.
pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// What a row takes and gives.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    pub(super) params: usize,
    pub(super) query: Option<Checker>,
    pub(super) body: Option<Checker>,
    pub(super) describe_body: Option<Describe>,
    pub(super) describe_reply: Option<Describe>,
    /// Why a schema could not be compiled.
    pub(super) broken: Option<String>,
}

impl Shapes {
    fn of<P: PathParams, Q: JsonSchema + 'static>() -> Self {
        let mut shapes = Self {
            params: P::COUNT,
            ..Self::default()
        };
        shapes.query = shapes.compiled::<Q>();
        shapes
    }

    fn with_body<B: JsonSchema + 'static>(mut self) -> Self {
        self.body = self.compiled::<B>();
        self.describe_body = described::<B>();
        self
    }

    fn with_reply<T: JsonSchema + 'static>(mut self) -> Self {
        self.describe_reply = described::<T>();
        self
    }

    fn compiled<T: JsonSchema + 'static>(&mut self) -> Option<Checker> {
        if is_unit::<T>() {
            return None;
        }
        match Checker::of::<T>() {
            Ok(checker) => Some(checker),
            Err(why) => {
                self.broken = Some(why);
                None
            }
        }
    }
}

fn described<T: JsonSchema + 'static>() -> Option<Describe> {
    if is_unit::<T>() {
        None
    } else {
        Some(|generator| generator.subschema_for::<T>())
    }
}

/// What a row declares before it has its handler. Start with [`get`], [`post`], [`put`], [`patch`] or [`delete`];
/// end with [`Row::reads`], [`Row::writes`], [`Row::plain`] or [`Row::uploads`].
#[derive(Clone, Debug)]
pub struct Row {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) aliases: Vec<&'static str>,
    pub(super) operation: &'static str,
    pub(super) summary: &'static str,
    pub(super) access: Access,
    pub(super) success: Vec<StatusCode>,
    pub(super) refuses: Vec<Code>,
    pub(super) style: ErrorStyle,
    pub(super) takes_forms: bool,
    pub(super) takes: Vec<&'static str>,
    pub(super) headers: Vec<(&'static str, Value)>,
}

macro_rules! methods {
    ($($name:ident $method:ident $text:literal),+) => {$(
        #[doc = concat!("A `", $text, "` row: the documented path, and the operation id of OpenAPI.")]
        #[must_use]
        pub fn $name(path: &'static str, operation: &'static str) -> Row {
            Row::new(Method::$method, path, operation)
        }
    )+};
}
methods!(get GET "GET", post POST "POST", put PUT "PUT", patch PATCH "PATCH", delete DELETE "DELETE");

impl Row {
    fn new(method: Method, path: &'static str, operation: &'static str) -> Self {
        Self {
            method,
            path,
            aliases: Vec::new(),
            operation,
            summary: "",
            access: Access::Signed,
            success: vec![StatusCode::OK],
            refuses: Vec::new(),
            style: ErrorStyle::Envelope,
            takes_forms: false,
            takes: vec![ANY_BYTES],
            headers: Vec::new(),
        }
    }

    /// Says in a sentence what the route does.
    #[must_use]
    pub fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Opens the route to a class of callers; `Signed` when not said.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Answers another documented path as well.
    #[must_use]
    pub fn alias(mut self, path: &'static str) -> Self {
        self.aliases.push(path);
        self
    }

    /// The statuses of success; the first one unless the handler says otherwise. 200 when not said.
    #[must_use]
    pub fn success(mut self, statuses: &[StatusCode]) -> Self {
        self.success = statuses.to_vec();
        self
    }

    /// The codes it can refuse with, besides those every route may answer.
    #[must_use]
    pub fn refuses(mut self, codes: &[Code]) -> Self {
        self.refuses = codes.to_vec();
        self
    }

    /// Wraps errors differently.
    #[must_use]
    pub fn errors(mut self, style: ErrorStyle) -> Self {
        self.style = style;
        self
    }

    /// Takes `application/x-www-form-urlencoded` bodies too; who sends one gets errors as RFC 6749 wants them.
    #[must_use]
    pub fn takes_forms(mut self) -> Self {
        self.takes_forms = true;
        self
    }

    /// The content types of bodies a row of uploads takes.
    #[must_use]
    pub fn takes(mut self, content_types: &[&'static str]) -> Self {
        self.takes = content_types.to_vec();
        self
    }

    /// Describes a header the handler reads, by its schema.
    #[must_use]
    pub fn header(mut self, name: &'static str, schema: Value) -> Self {
        self.headers.push((name, schema));
        self
    }

    /// Ends the row with a handler that reads: its unit sees one state of the store and is dropped afterwards.
    #[must_use]
    pub fn reads<P, Q, B, T, H>(self, handler: H) -> Endpoint
    where
        P: PathParams,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        B: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + Send + Sync + 'static,
        H: for<'a> UnitHandler<'a, P, Q, B, T>,
    {
        self.in_unit(Mode::Read, handler)
    }

    /// As [`Self::reads`], for a handler that asks the store one question: no transaction is opened for it.
    #[must_use]
    pub fn reads_once<P, Q, B, T, H>(self, handler: H) -> Endpoint
    where
        P: PathParams,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        B: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + Send + Sync + 'static,
        H: for<'a> UnitHandler<'a, P, Q, B, T>,
    {
        self.in_unit(Mode::Auto, handler)
    }

    /// Ends the row with a handler that writes: change, audit, idempotent answer and outbox are one commit. The handler
    /// is run again when the unit lost a race, so it must have no effect outside it.
    #[must_use]
    pub fn writes<P, Q, B, T, H>(self, handler: H) -> Endpoint
    where
        P: PathParams,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        B: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + Send + Sync + 'static,
        H: for<'a> UnitHandler<'a, P, Q, B, T>,
    {
        self.in_unit(Mode::Write, handler)
    }

    fn in_unit<P, Q, B, T, H>(self, mode: Mode, handler: H) -> Endpoint
    where
        P: PathParams,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        B: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + Send + Sync + 'static,
        H: for<'a> UnitHandler<'a, P, Q, B, T>,
    {
        let handler = Arc::new(handler);
        let run = unit_run(move |cx, uow, parsed| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let output = handler.call(cx, uow, parsed.input()?).await?;
                Reply::of(&output, cx.success)
            })
        });
        let shapes = Shapes::of::<P, Q>().with_body::<B>().with_reply::<T>();
        Endpoint::new(self, shapes, Handler::Unit(mode, run))
    }

    /// Ends the row with a handler that is given no unit, because it does slow work first (hashing, calls outside). It
    /// opens its units with [`core_domain::port::transact`] on `cx.app.store` and calls [`Cx::keep`](super::Cx::keep) in the last one.
    #[must_use]
    pub fn plain<P, Q, B, T, H>(self, handler: H) -> Endpoint
    where
        P: PathParams,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        B: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + Send + Sync + 'static,
        H: for<'a> PlainHandler<'a, P, Q, B, T>,
    {
        let handler = Arc::new(handler);
        let run = plain_run(move |cx, parsed| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let output = handler.call(cx, parsed.input()?).await?;
                Reply::of(&output, cx.success)
            })
        });
        let shapes = Shapes::of::<P, Q>().with_body::<B>().with_reply::<T>();
        Endpoint::new(self, shapes, Handler::Plain(run))
    }

    /// Ends the row with a handler of uploads: the body comes unread. The handler keeps idempotency keys itself, see
    /// [`Cx::idempotency_key`](super::Cx::idempotency_key), and wakes the workers.
    #[must_use]
    pub fn uploads<P, Q, T, H>(self, handler: H) -> Endpoint
    where
        P: PathParams,
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + Send + Sync + 'static,
        H: for<'a> UploadHandler<'a, P, Q, T>,
    {
        let handler = Arc::new(handler);
        let run = upload_run(move |cx, parsed, body| {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                cx.accepts_json()?;
                let input = RawInput {
                    path: parsed.path()?,
                    query: parsed.query()?,
                    body,
                };
                let output = handler.call(cx, input).await?;
                Reply::of(&output, cx.success)
            })
        });
        let shapes = Shapes::of::<P, Q>().with_reply::<T>();
        Endpoint::new(self, shapes, Handler::Upload(run))
    }
}

/// A row of the endpoint table, whole.
pub struct Endpoint {
    pub(super) row: Row,
    pub(super) shapes: Shapes,
    pub(super) handler: Handler,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("row", &self.row)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    fn new(row: Row, shapes: Shapes, handler: Handler) -> Self {
        Self {
            row,
            shapes,
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

    /// Who may call it.
    #[must_use]
    pub fn access(&self) -> Access {
        self.row.access
    }

    /// The statuses of success.
    #[must_use]
    pub fn success(&self) -> &[StatusCode] {
        &self.row.success
    }

    /// Tells whether the row takes its body unread.
    #[must_use]
    pub fn takes_uploads(&self) -> bool {
        matches!(self.handler, Handler::Upload(_))
    }

    /// The first success status.
    pub(super) fn first_success(&self) -> StatusCode {
        self.row.success.first().copied().unwrap_or(StatusCode::OK)
    }
}
