//! What every use case is given besides its input: who calls, for which request, and a source of entropy.

use std::sync::Arc;

use super::{Caller, Entropy};

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

/// The first argument of every use case.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who calls.
    pub caller: Caller,
    /// The request behind the call.
    pub request: RequestInfo,
    /// Where ids and secrets come from.
    pub entropy: Arc<dyn Entropy>,
}

impl Context {
    /// A context for work the suite does by itself.
    #[must_use]
    pub fn system(entropy: Arc<dyn Entropy>) -> Self {
        Self {
            caller: Caller::System,
            request: RequestInfo::default(),
            entropy,
        }
    }
}
