//! The context of a request, which every handler receives besides its input.

use std::ops::Deref;
use std::sync::Arc;

use core_domain::kernel::{Code, Context, Error, IfMatch, Result};
use http::header::AsHeaderName;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, header};

use super::idempotency_key::key_of;
use super::media_types::{EVENT_STREAM, accepts};
use crate::kernel::process::app::App;

/// The context of a request. Dereferences to the domain's [`Context`], so a handler passes it to use cases directly:
/// `use_case(cx, scope, uow, ..)`.
#[derive(Debug)]
pub struct Cx {
    /// The use case's context: caller, request, entropy, precondition.
    pub domain: Context,
    /// The ports and settings that all services share.
    pub app: Arc<App>,
    /// The method of the request; `HEAD` stays `HEAD`, although the row of `GET` handles it.
    pub method: Method,
    /// The request target as the client sent it: the path in the used spelling, and the undecoded query string.
    pub uri: Uri,
    /// All headers of the request.
    pub headers: HeaderMap,
    /// Values that the server, a gateway in this process, or the authentication has attached to the request. See
    /// [`Identify`](crate::kernel::Identify).
    pub extensions: Extensions,
    /// The first success status of the row.
    pub(crate) success: StatusCode,
}

impl Deref for Cx {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.domain
    }
}

impl Cx {
    /// Returns the first value of a header; `None` if the header is missing or is not visible ASCII.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the idempotency key of an upload, whose handler has to store keys itself.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the key is malformed.
    pub fn idempotency_key(&self) -> Result<Option<&str>> {
        key_of(&self.headers)
    }

    /// Returns whether the `Accept` header names `text/event-stream`. Wildcards do not count.
    #[must_use]
    pub fn asks_for_events(&self) -> bool {
        self.names(EVENT_STREAM)
    }

    /// Returns whether the `Accept` header names `text/html`, as that of browsers does. Wildcards do not count.
    #[must_use]
    pub fn asks_for_page(&self) -> bool {
        self.names("text/html")
    }

    fn names(&self, content_type: &str) -> bool {
        let accept = self.header(header::ACCEPT).unwrap_or_default();
        let named = |range: &str| range.trim_start().starts_with(content_type);
        let mut ranges = accept.split(',').filter(|range| named(range));
        ranges.any(|range| accepts(range, content_type))
    }

    /// Returns whether `If-None-Match` includes this entity tag, so that the client already has the representation.
    pub(crate) fn if_none_match(&self, etag: &str) -> bool {
        self.header(header::IF_NONE_MATCH)
            .is_some_and(|value| IfMatch::weak(value).includes(etag))
    }

    /// Checks that the `Accept` header allows one of these content types. Without the header, or without content types,
    /// every request passes.
    ///
    /// # Errors
    /// `NOT_ACCEPTABLE` if the client accepts none of them.
    pub(crate) fn ensure_acceptable(&self, content_types: &[&str]) -> Result<()> {
        let Some(accept) = self.header(header::ACCEPT) else {
            return Ok(());
        };
        let accepted = |content_type: &&str| accepts(accept, content_type);
        if accept.trim().is_empty()
            || content_types.is_empty()
            || content_types.iter().any(accepted)
        {
            return Ok(());
        }
        Err(Error::refused(
            Code::NotAcceptable,
            format!("Responses are of type {}.", content_types.join(", ")),
        ))
    }
}
