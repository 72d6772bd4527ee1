//! The context of a use case: the caller, the request and a source of entropy.

use std::sync::Arc;

use super::{Caller, Entropy, Error, Limits, Record, Result, Stored};

/// Information about the HTTP request of a call, for the audit log and for tracing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The id of the request. It is the same in the response, the log, the audit log and every job that the request
    /// created.
    pub request_id: String,
    /// The trace id; `None` if the request is not traced.
    pub trace_id: Option<String>,
    /// The IP address of the client, if known.
    pub ip: Option<String>,
    /// The `User-Agent` header of the client, if it sent one.
    pub user_agent: Option<String>,
}

/// The entity tags of an `If-Match` header, one of which the record must have, or of an `If-None-Match` header, none of
/// which it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfMatch {
    any: bool,
    tags: Vec<String>,
}

impl IfMatch {
    /// Parses an `If-Match` header: a list of tags, or `*` for any. Weak tags are ignored. They say that two states are
    /// equivalent, not that they are the same (RFC 9110, 13.1.1).
    #[must_use]
    pub fn strong(header: &str) -> Self {
        Self::of(header, |tag| (!tag.starts_with("W/")).then_some(tag))
    }

    /// Parses an `If-None-Match` header: a list of tags, or `*` for any. Weak and strong tags are equal (RFC 9110,
    /// 13.1.2).
    #[must_use]
    pub fn weak(header: &str) -> Self {
        Self::of(header, |tag| Some(tag.strip_prefix("W/").unwrap_or(tag)))
    }

    fn of(header: &str, counted: impl Fn(&str) -> Option<&str>) -> Self {
        let tags = header.split(',').map(str::trim);
        let counted = tags.filter_map(counted).map(|tag| tag.trim_matches('"'));
        Self {
            any: header.trim() == "*",
            tags: counted.map(str::to_owned).collect(),
        }
    }

    /// Returns whether the header contains this tag or `*`.
    #[must_use]
    pub fn includes(&self, etag: &str) -> bool {
        self.any || self.tags.iter().any(|tag| tag == etag)
    }
}

/// The first argument of every use case.
#[derive(Clone, Debug)]
pub struct Context {
    /// The caller of the use case.
    pub caller: Arc<Caller>,
    /// The HTTP request that led to the call.
    pub request: RequestInfo,
    /// The source of entropy for ids and secrets.
    pub entropy: Arc<dyn Entropy>,
    /// The limits on what callers can create.
    pub limits: Arc<Limits>,
    /// The `If-Match` condition of the request. It is checked against every record that is replaced or removed; see
    /// [`Context::without_conditions`].
    pub if_match: Option<IfMatch>,
    /// The `If-None-Match` condition of the request: `*` requires that the record does not exist yet. It is checked
    /// like `if_match`.
    pub if_none_match: Option<IfMatch>,
}

impl Context {
    /// Returns the context for background work of the suite, without limits.
    #[must_use]
    pub fn system(entropy: Arc<dyn Entropy>) -> Self {
        Self {
            caller: Arc::new(Caller::System),
            request: RequestInfo::default(),
            entropy,
            limits: Arc::new(Limits::unlimited()),
            if_match: None,
            if_none_match: None,
        }
    }

    /// Returns the context for changes to records that the request does not name. The conditions of the request do not
    /// apply to them.
    #[must_use]
    pub fn without_conditions(&self) -> Self {
        Self {
            if_match: None,
            if_none_match: None,
            ..self.clone()
        }
    }

    /// Checks the conditions of the request against a record.
    ///
    /// # Errors
    /// `VERSION_CONFLICT` if the record has none of the tags of `If-Match`, or one of the tags of `If-None-Match`.
    pub fn check_if_match<R: Record>(&self, seen: &Stored<R>) -> Result<()> {
        let includes = |tags: &IfMatch| tags.includes(&seen.etag());
        let wanted = self.if_match.as_ref().is_none_or(includes);
        let unwanted = self.if_none_match.as_ref().is_some_and(includes);
        if wanted && !unwanted {
            return Ok(());
        }
        Err(Error::VersionConflict)
    }

    /// Checks the conditions of the request against a record that does not exist, and therefore has no tag.
    ///
    /// # Errors
    /// `VERSION_CONFLICT` if the request has an `If-Match` header.
    pub const fn check_absent(&self) -> Result<()> {
        match self.if_match {
            Some(_) => Err(Error::VersionConflict),
            None => Ok(()),
        }
    }
}
