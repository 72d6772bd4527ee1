//! What every use case is given besides its input: who calls, for which request, and a source of entropy.

use std::sync::Arc;

use super::{Caller, Entropy, Error, Limits, Record, Result, Stored};

/// What is known of the request behind a call, for the audit and for tracing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The request id; the same in the answer, the log, the audit and every job the request queued.
    pub request_id: String,
    /// The trace id, if the request is traced.
    pub trace_id: Option<String>,
    /// The client's address, if known.
    pub ip: Option<String>,
    /// The client's `User-Agent`, if it sent one.
    pub user_agent: Option<String>,
}

/// The entity tags of an `If-Match` header, which wants the record to have one of them, or of an `If-None-Match` header,
/// which wants it to have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfMatch {
    any: bool,
    tags: Vec<String>,
}

impl IfMatch {
    /// Reads the value of `If-Match`: a list of tags, or `*` for any. A weak tag is no record's: it says of two states that
    /// they are as good as each other, not that they are one (RFC 9110, 13.1.1).
    #[must_use]
    pub fn strong(header: &str) -> Self {
        Self::of(header, |tag| (!tag.starts_with("W/")).then_some(tag))
    }

    /// Reads the value of `If-None-Match`: a list of tags, a weak one as good as a strong one, or `*` for any (RFC 9110,
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

    /// Tells whether a record with this tag is meant.
    #[must_use]
    pub fn includes(&self, etag: &str) -> bool {
        self.any || self.tags.iter().any(|tag| tag == etag)
    }
}

/// The first argument of every use case.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who calls.
    pub caller: Arc<Caller>,
    /// The request behind the call.
    pub request: RequestInfo,
    /// Where ids and secrets come from.
    pub entropy: Arc<dyn Entropy>,
    /// How much callers may create.
    pub limits: Arc<Limits>,
    /// What the caller believes of the record they change; compared with every record that is replaced or removed,
    /// see [`Context::consequence`].
    pub if_match: Option<IfMatch>,
    /// What the record they write must not be: `*` when it must not be there yet. Compared as `if_match` is.
    pub if_none_match: Option<IfMatch>,
}

impl Context {
    /// A context for work that the suite does by itself, without limits.
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

    /// The context in which a use case changes other records than the one the caller named: what the caller believes
    /// says nothing of those.
    #[must_use]
    pub fn consequence(&self) -> Self {
        Self {
            if_match: None,
            if_none_match: None,
            ..self.clone()
        }
    }

    /// Compares what the caller believes of a record with the record.
    ///
    /// # Errors
    /// `VERSION_CONFLICT` when the record has none of the tags of `If-Match`, or one of those of `If-None-Match`.
    pub fn check_if_match<R: Record>(&self, seen: &Stored<R>) -> Result<()> {
        let includes = |tags: &IfMatch| tags.includes(&seen.etag());
        let wanted = self.if_match.as_ref().is_none_or(includes);
        let unwanted = self.if_none_match.as_ref().is_some_and(includes);
        if wanted && !unwanted {
            return Ok(());
        }
        Err(Error::VersionConflict)
    }

    /// As [`Self::check_if_match`], for a record that is not there: it has no tag at all.
    ///
    /// # Errors
    /// `VERSION_CONFLICT` when the caller believes that it is there.
    pub const fn check_absent(&self) -> Result<()> {
        match self.if_match {
            Some(_) => Err(Error::VersionConflict),
            None => Ok(()),
        }
    }
}
