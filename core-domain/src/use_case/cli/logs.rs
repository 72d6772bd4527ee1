//! The logs of a platform's workers and sites, as a feed that follows new lines.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::access::{PlatformScope, authorize};
use crate::cli::{LogId, MAX_LOG_TAIL};
use crate::kernel::{Code, Context, Effect, Error, Line, PlatformId, Result, permission};
use crate::port::{
    Cause, Infrastructure, LogBatch, LogError, LogListener, LogQuery, LogReader, LogStart, Mode,
    Store,
};
use crate::use_case::iam;

/// Selects the lines of a platform's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformLogQuery {
    /// Only lines of the worker or pages project with this name. `null` means all of the platform.
    pub resource: Option<Line<1, 64>>,
    /// Number of existing lines with which the stream starts, of all selected resources together. Ignored with
    /// `Last-Event-ID`. Default: 100.
    pub tail: Option<LogTail>,
    /// Whether the response stays open for new lines. `false` ends it after the existing lines. Default: `true`.
    pub follow: Option<bool>,
}

/// A number of existing log lines: 0 to 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct LogTail(pub u32);

impl Default for LogTail {
    fn default() -> Self {
        Self(100)
    }
}

impl JsonSchema for LogTail {
    fn schema_name() -> Cow<'static, str> {
        "LogTail".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": MAX_LOG_TAIL,
            "default": Self::default().0 })
    }
}

/// A position in the log of a platform, with the caller that reads it.
#[derive(Debug)]
pub struct LogFeed {
    cx: Context,
    platform: PlatformId,
    reader: Box<dyn LogReader>,
}

/// Opens the log of a platform. `last` is the id of the last line that the caller received; the feed then starts with
/// the next kept line. `listener` is notified of new lines.
///
/// # Errors
/// - `VALIDATION_ERROR` if `last` is not the id of a line.
/// - `NOT_FOUND` if the platform has no worker or site with the name in the query, or the provider has no logs.
/// - `UPSTREAM_ERROR` if the provider fails.
pub async fn open_log(
    cx: &Context,
    scope: &PlatformScope<permission::LogRead>,
    infrastructure: &dyn Infrastructure,
    query: &PlatformLogQuery,
    last: Option<&str>,
    listener: Option<Arc<dyn LogListener>>,
) -> Result<LogFeed> {
    let start = match last {
        Some(last) => LogStart::After(LogId::parse(last).ok_or_else(invalid_id)?),
        None => LogStart::Tail(query.tail.unwrap_or_default().0.min(MAX_LOG_TAIL)),
    };
    let Some(logs) = infrastructure.logs() else {
        let message = "The infrastructure provider of this installation has no logs.";
        return Err(Error::refused(Code::NotFound, message));
    };
    let query = LogQuery {
        owner: scope.id().to_string(),
        resource: query.resource.as_ref().map(ToString::to_string),
        start,
        follow: query.follow.unwrap_or(true),
        listener,
    };
    let reader = logs.open(query).await.map_err(upstream_error)?;
    Ok(LogFeed {
        cx: cx.without_conditions(),
        platform: scope.id().clone(),
        reader: reader.ok_or(Error::NotFound("worker or site"))?,
    })
}

impl LogFeed {
    /// Returns the next lines and moves the position after them. Authorizes the caller again before it reads.
    ///
    /// # Errors
    /// - Those of [`Self::authorize_again`].
    /// - `UPSTREAM_ERROR` if the provider fails.
    pub async fn next(&mut self, store: &dyn Store) -> Result<LogBatch> {
        self.authorize_again(store).await?;
        self.reader.next().await.map_err(upstream_error)
    }

    /// Authorizes the caller again, with the caller's current permissions.
    ///
    /// # Errors
    /// - `UNAUTHORIZED` if the session or API key has expired or was revoked.
    /// - The errors of [`authorize`].
    pub async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        let mut uow = store.begin(Mode::Read).await?;
        let caller = iam::current_caller(&self.cx, uow.as_mut()).await?;
        let cx = Context {
            caller,
            ..self.cx.clone()
        };
        authorize::<permission::LogRead>(&cx, uow.as_mut(), &self.platform)
            .await
            .map(drop)
    }

    /// Returns whether the effect may have changed the caller's access to the platform, so that
    /// [`Self::authorize_again`] must be called.
    #[must_use]
    pub fn must_reauthorize_after(&self, effect: &Effect) -> bool {
        effect.changes_access_of(&self.cx.caller, Some(&self.platform))
    }
}

fn invalid_id() -> Error {
    Error::invalid("lastEventId", "unknown", "is not the id of a line")
}

fn upstream_error(error: LogError) -> Error {
    Error::Upstream(Cause::new(error).to_string())
}
