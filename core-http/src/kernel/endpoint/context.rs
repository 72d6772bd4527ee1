//! The context of a request, which every handler receives besides its input.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use core_domain::kernel::{Code, Context, Error, IfMatch, Result};
use http::header::AsHeaderName;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, header};

use super::service::App;
use crate::kernel::admission::idempotency::{Claim, key_of};
use crate::kernel::answer::media::EVENT_STREAM;

/// The prefix that a gateway in the same process has removed from the path. Equivalent to the header
/// `X-Forwarded-Prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedPrefix(pub Cow<'static, str>);

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
    /// The claim on the request's idempotency key. `None` if the row does not accept keys or the request has none.
    pub(crate) claim: Option<Claim>,
    /// Whether a success of the row can take away the access that the row requires, see
    /// [`Row::ends_access`](crate::kernel::Row::ends_access).
    pub(crate) ends_access: bool,
    /// The code that the row uses in place of `NOT_FOUND`.
    pub(crate) not_found: Code,
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
        let accept = self.header(header::ACCEPT).unwrap_or_default();
        let named = |range: &str| range.trim_start().starts_with(EVENT_STREAM);
        let mut ranges = accept.split(',').filter(|range| named(range));
        ranges.any(|range| accepts(range, EVENT_STREAM))
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

/// Returns whether an `Accept` header allows a content type. Quality values are ignored, except zero.
fn accepts(accept: &str, content_type: &str) -> bool {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or(content_type)
        .trim();
    let group = essence.split('/').next().unwrap_or(essence);
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let wanted = parts.next().unwrap_or_default();
        let refused = parts.any(|part| part == "q=0" || part == "q=0.0");
        let fits = wanted == "*/*"
            || wanted.eq_ignore_ascii_case(essence)
            || wanted.strip_suffix("/*") == Some(group)
            // Clients that accept only problem documents can read the JSON of an error as well.
            || (essence == crate::kernel::answer::reply::JSON && wanted == "application/problem+json");
        fits && !refused
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn accept_matches_the_exact_type_its_group_or_a_wildcard() {
        let json = crate::kernel::answer::reply::JSON;
        for good in [
            "*/*",
            "application/*",
            "application/json",
            "text/html, */*;q=0.1",
        ] {
            assert!(accepts(good, json), "{good}");
        }
        for bad in [
            "text/html",
            "application/json;q=0",
            "image/*",
            "application",
        ] {
            assert!(!accepts(bad, json), "{bad}");
        }
        assert!(accepts("text/html", "text/html; charset=utf-8"));
    }
}
