//! What a handler knows besides its input.

use std::ops::Deref;
use std::sync::Arc;

use core_domain::kernel::{Code, Context, Error, Result};
use core_domain::port::{Stored, UnitOfWork};
use http::{HeaderMap, Method, StatusCode, header};
use serde::Serialize;

use super::idempotency::key_of;
use super::{App, Claim, Output, Reply};

/// The prefix a gateway in the same process took off the path; same as the header `X-Forwarded-Prefix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedPrefix(pub String);

/// The context of a request. Dereferences to the domain's [`Context`], so `use_case(cx, uow, ..)` just works.
#[derive(Debug)]
pub struct Cx {
    /// The use case's context: caller, request, entropy.
    pub domain: Context,
    /// What all services share.
    pub app: Arc<App>,
    /// The method.
    pub method: Method,
    /// The path in its documented form, whatever spelling was used; parameters as the client wrote them.
    pub path: String,
    /// The query string as the client wrote it.
    pub query: Option<String>,
    /// All headers of the request.
    pub headers: HeaderMap,
    /// The idempotency key of this write, if it has one and the caller is known.
    pub claim: Option<Claim>,
    /// What identifies the request under its idempotency key; empty for uploads.
    pub request_hash: String,
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
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The idempotency key of an upload, which keeps keys itself.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` for a key that is none.
    pub fn idempotency_key(&self) -> Result<Option<&str>> {
        key_of(&self.headers)
    }

    /// Obeys `If-Match`: call it in a `PATCH`, `PUT` or `DELETE` handler with the record as it was read in the unit.
    ///
    /// # Errors
    /// `VERSION_CONFLICT` when the client named another version.
    pub fn expects<R>(&self, record: &Stored<R>) -> Result<()> {
        self.expects_tag(&record.version().to_string())
    }

    /// As [`Cx::expects`], for a tag that is no version.
    ///
    /// # Errors
    /// `VERSION_CONFLICT` when the client named another tag.
    pub fn expects_tag(&self, tag: &str) -> Result<()> {
        match self.headers.get(header::IF_MATCH) {
            Some(wanted) if !lists(wanted.to_str().unwrap_or_default(), tag) => {
                Err(Error::VersionConflict)
            }
            _ => Ok(()),
        }
    }

    /// Stores the answer under the idempotency key, in the unit of the change. For `plain` handlers, which
    /// open their units themselves; does nothing without a key.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` when another process was faster.
    pub async fn keep<T: Serialize + Sync + 'static>(
        &self,
        uow: &mut dyn UnitOfWork,
        output: &Output<T>,
    ) -> Result<()> {
        let Some(claim) = &self.claim else {
            return Ok(());
        };
        let reply = Reply::of(output, self.success)?;
        claim.keep(uow, &self.request_hash, &reply).await
    }

    /// Tells whether the client already has what carries this tag (`If-None-Match` of a `GET`).
    pub(crate) fn already_has(&self, tag: &str) -> bool {
        self.header(header::IF_NONE_MATCH.as_str())
            .is_some_and(|value| lists(value, tag))
    }

    /// Refuses what the handler cannot answer.
    pub(crate) fn accepts_json(&self) -> Result<()> {
        let Some(accept) = self.header(header::ACCEPT.as_str()) else {
            return Ok(());
        };
        let fits = accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let refused = parts.any(|p| p == "q=0" || p == "q=0.0");
            let known = [
                "*/*",
                "application/*",
                "application/json",
                "application/problem+json",
            ];
            !refused && known.iter().any(|k| k.eq_ignore_ascii_case(kind))
        });
        if fits || accept.trim().is_empty() {
            Ok(())
        } else {
            Err(Error::refused(
                Code::NotAcceptable,
                "Answers are application/json.",
            ))
        }
    }
}

/// Tells whether a list of entity tags names this one, or anything (`*`).
fn lists(header: &str, tag: &str) -> bool {
    header.split(',').map(str::trim).any(|entry| {
        let entry = entry.strip_prefix("W/").unwrap_or(entry);
        entry == "*" || entry.trim_matches('"') == tag
    })
}
