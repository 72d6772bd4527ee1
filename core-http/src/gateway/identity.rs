//! The outcome of authentication.

use std::sync::Arc;

use core_domain::kernel::Caller;

use super::event_stream::Presented;
use crate::kernel::UNAUTHENTICATED;

/// The outcome of authentication.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Who calls.
    pub(crate) caller: Arc<Caller>,
    /// Whether the caller's platform is suspended; never for the service key.
    pub(crate) suspended: bool,
    /// Whether the bearer of the request is the client's own session and may be forwarded to the services that validate
    /// sessions.
    pub(crate) session: bool,
    /// The credential that was resolved; none where none was asked for, or it was the service key.
    pub(crate) presented: Option<Presented>,
}

impl Identity {
    /// A route that needs no credential.
    pub(crate) fn anonymous() -> Self {
        Self {
            caller: Arc::new(Caller::Anonymous),
            suspended: false,
            session: true,
            presented: None,
        }
    }

    /// The holder of the service key.
    pub(crate) fn service_key() -> Self {
        Self::service("service-key", false)
    }

    /// Any caller, when no service key is configured. Its session still reaches the services that validate sessions.
    pub(crate) fn unauthenticated() -> Self {
        Self::service(UNAUTHENTICATED, true)
    }

    fn service(name: &str, session: bool) -> Self {
        Self {
            caller: Arc::new(Caller::Service {
                name: name.to_owned(),
            }),
            suspended: false,
            session,
            presented: None,
        }
    }
}
