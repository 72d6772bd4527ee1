//! Step 9: who calls. The service key, then a session, then an API key; the first that is present decides.

use std::sync::Arc;

use core_domain::gateway::{Credential, read_credential};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::authority::AuthorityError;
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome};
use crate::gateway::identity::Identity;
use crate::gateway::refusal::Refusal;
use crate::gateway::session_cache::SessionCache;
use crate::kernel::{ServiceKey, header_names};

#[derive(Clone, Debug)]
pub(crate) struct Authenticate {
    pub(crate) settings: Arc<Settings>,
    pub(crate) sessions: Arc<SessionCache>,
}

impl Step for Authenticate {
    async fn run<S: Next>(&self, mut inbound: Inbound, next: S) -> Outcome {
        if inbound.exchange.is_api() {
            let request = &inbound.request;
            let public = self
                .settings
                .is_public(request.method(), request.uri().path());
            let identity = self.identify(public, request.headers()).await?;
            let actor = identity.caller.actor_id().to_owned();
            let _ = inbound.exchange.actor.set(actor);
            inbound.identity = Some(identity);
        }
        next.oneshot(inbound).await
    }
}

fn credential(headers: &HeaderMap) -> Result<Option<Credential>, Refusal> {
    let lines = |name: &str| -> Vec<&[u8]> {
        let lines = headers.get_all(name).iter();
        lines.map(http::HeaderValue::as_bytes).collect()
    };
    let (bearers, keys) = (lines(AUTHORIZATION.as_str()), lines(header_names::API_KEY));
    Ok(read_credential(&bearers, &keys)?)
}

impl Authenticate {
    async fn identify(&self, public: bool, headers: &HeaderMap) -> Result<Identity, Refusal> {
        let Some(service_key) = &self.settings.service_key else {
            return Ok(Identity::unauthenticated());
        };
        if public {
            return Ok(self.public(headers, service_key));
        }
        match credential(headers)? {
            None => Err(Refusal::unauthorized()),
            Some(Credential::Bearer(token)) if service_key.is(token.expose()) => {
                Ok(Identity::service_key())
            }
            Some(credential) => self.look_up(&credential).await,
        }
    }

    /// Nobody, whatever the request brings. A session still reaches the services that want it, the service key never.
    fn public(&self, headers: &HeaderMap, service_key: &ServiceKey) -> Identity {
        let mut identity = Identity::anonymous();
        identity.session = match credential(headers) {
            Ok(Some(Credential::Bearer(token))) => !service_key.is(token.expose()),
            Ok(_) => true,
            Err(_) => false,
        };
        identity
    }

    async fn look_up(&self, credential: &Credential) -> Result<Identity, Refusal> {
        match self.sessions.resolve(credential).await {
            Ok(resolved) => Ok(Identity {
                caller: resolved.caller,
                suspended: resolved.suspended,
                session: matches!(credential, Credential::Bearer(_)),
            }),
            Err(AuthorityError::Refused) => Err(Refusal::unauthorized()),
            Err(AuthorityError::Unavailable(cause)) => Err(Refusal::unavailable(cause)),
        }
    }
}
