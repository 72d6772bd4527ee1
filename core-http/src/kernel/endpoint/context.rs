//! What a handler knows besides its input.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use core_domain::kernel::{Code, Context, Error, IfMatch, Result};
use http::header::AsHeaderName;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, header};

use super::service::App;
use crate::kernel::admission::idempotency::{Claim, key_of};
use crate::kernel::answer::media::EVENT_STREAM;

/// The prefix a gateway in the same process took off the path; same as the header `X-Forwarded-Prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedPrefix(pub Cow<'static, str>);

/// The context of a request. Dereferences to the domain's [`Context`], so `use_case(cx, scope, uow, ..)` just works.
#[derive(Debug)]
pub struct Cx {
    /// The use case's context: caller, request, entropy, precondition.
    pub domain: Context,
    /// What all services share.
    pub app: Arc<App>,
    /// The method.
    pub method: Method,
    /// The target of the request in the spelling that was used; the query string as the client wrote it.
    pub uri: Uri,
    /// All headers of the request.
    pub headers: HeaderMap,
    /// What the way here has left in the request: see [`Identify`](super::Identify).
    pub extensions: Extensions,
    /// The idempotency key of this write, if the row takes keys and the request has one.
    pub(crate) claim: Option<Claim>,
    /// Whether a success of the row can end what it asks of its caller.
    pub(crate) ends_access: bool,
    /// The code with which the row refuses what is not found.
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
    /// The value of a header, if it is there once and is text.
    #[must_use]
    pub fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The idempotency key of an upload, whose handler keeps keys itself.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` for a key that is none.
    pub fn idempotency_key(&self) -> Result<Option<&str>> {
        key_of(&self.headers)
    }

    /// Tells whether the client names server-sent events among what it takes.
    #[must_use]
    pub fn asks_for_events(&self) -> bool {
        let accept = self.header(header::ACCEPT).unwrap_or_default();
        let named = |range: &str| range.trim_start().starts_with(EVENT_STREAM);
        let mut ranges = accept.split(',').filter(|range| named(range));
        ranges.any(|range| accepts(range, EVENT_STREAM))
    }

    /// Tells whether the client already has what carries this tag (`If-None-Match` of a `GET`).
    pub(crate) fn if_none_match(&self, etag: &str) -> bool {
        self.header(header::IF_NONE_MATCH)
            .is_some_and(|value| IfMatch::weak(value).includes(etag))
    }

    /// Refuses a client that takes none of the content types there are.
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
            format!("Answers are {}.", content_types.join(", ")),
        ))
    }
}

/// Tells whether an `Accept` header takes a content type.
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
            // An error comes as JSON as well.
            || (essence == crate::kernel::answer::reply::JSON && wanted == "application/problem+json");
        fits && !refused
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn an_accept_header_takes_a_type_its_group_or_everything() {
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
