//! Who a request was found to come from, and the service key.

use core_domain::gateway::Secret;
use core_domain::kernel::Caller;

use crate::kernel::{ServiceKey, UNAUTHENTICATED};

/// Reads the service key, which is kept as a digest alone.
pub(crate) fn read_service_key(key: &Secret) -> Result<ServiceKey, &'static str> {
    let text = key.expose();
    if text.is_empty() {
        return Err("must not be empty; leave it out to run without authentication");
    }
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("must be of visible ASCII characters without spaces");
    }
    Ok(ServiceKey::new(text))
}

/// The outcome of authentication.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Who calls.
    pub(crate) caller: Caller,
    /// Whether the caller's platform is suspended; never for the service key.
    pub(crate) suspended: bool,
    /// Whether the bearer of the request is the client's own session and may be shown to the services that want it.
    pub(crate) session: bool,
}

impl Identity {
    /// A route that needs no credential.
    pub(crate) fn anonymous() -> Self {
        Self {
            caller: Caller::Anonymous,
            suspended: false,
            session: true,
        }
    }

    /// The holder of the service key.
    pub(crate) fn service_key() -> Self {
        Self::service("service-key", false)
    }

    /// Anybody, when there is no service key. What they bring as a session still reaches the services that want it.
    pub(crate) fn unauthenticated() -> Self {
        Self::service(UNAUTHENTICATED, true)
    }

    fn service(name: &str, session: bool) -> Self {
        Self {
            caller: Caller::Service {
                name: name.to_owned(),
            },
            suspended: false,
            session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_itself_is_the_key() {
        let key = read_service_key(&Secret::new("s3cret")).unwrap();
        assert!(key.is("s3cret"));
        for other in ["", "s3cre", "s3crets", "S3CRET"] {
            assert!(!key.is(other), "{other}");
        }
    }

    #[test]
    fn an_empty_key_is_a_mistake_not_a_key_that_matches_nothing() {
        assert!(read_service_key(&Secret::new("")).is_err());
        assert!(read_service_key(&Secret::new("a b")).is_err());
    }
}
