//! The result of authentication.

use std::sync::Arc;

use core_domain::kernel::Caller;

use super::event_stream::PresentedCredential;
use crate::kernel::UNAUTHENTICATED;

/// The caller of a request, and what follows from its credential.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The caller that the credential identifies.
    pub(crate) caller: Arc<Caller>,
    /// Whether the platform of the caller is suspended. Always `false` for the service key.
    pub(crate) suspended: bool,
    /// Whether the bearer token is the session of the client, and may be forwarded to services that validate sessions.
    pub(crate) session: bool,
    /// The credential that was resolved. `None` if the route needs no credential, and for the service key.
    pub(crate) credential: Option<PresentedCredential>,
}

impl Identity {
    /// Returns the identity of callers of a route that needs no credential.
    pub(crate) fn anonymous() -> Self {
        Self {
            caller: Arc::new(Caller::Anonymous),
            suspended: false,
            session: true,
            credential: None,
        }
    }

    /// Returns the identity of the holder of the service key.
    pub(crate) fn service_key() -> Self {
        Self::service("service-key", false)
    }

    /// Returns the identity of every caller if no service key is configured. Their sessions are still forwarded to
    /// services that validate sessions.
    pub(crate) fn unauthenticated_service() -> Self {
        Self::service(UNAUTHENTICATED, true)
    }

    fn service(name: &str, session: bool) -> Self {
        Self {
            caller: Arc::new(Caller::Service {
                name: name.to_owned(),
            }),
            suspended: false,
            session,
            credential: None,
        }
    }
}
