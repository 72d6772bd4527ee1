//! Step 9: authentication by the service key, a session or an API key; the first that is present decides.

use std::net::IpAddr;
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
use crate::kernel::rate_limit::RateLimits;
use crate::kernel::{ServiceKey, header_names};

#[derive(Clone, Debug)]
pub(crate) struct Authenticate {
    pub(crate) settings: Arc<Settings>,
    pub(crate) sessions: Arc<SessionCache>,
    pub(crate) rates: Arc<RateLimits>,
}

impl Step for Authenticate {
    async fn run<S: Next>(&self, mut inbound: Inbound, next: S) -> Outcome {
        if inbound.exchange.is_api() {
            let request = &inbound.request;
            let public = self
                .settings
                .is_public(request.method(), request.uri().path());
            let client = inbound.exchange.client;
            let identity = self.identify(public, request.headers(), client).await?;
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
    async fn identify(
        &self,
        public: bool,
        headers: &HeaderMap,
        client: Option<IpAddr>,
    ) -> Result<Identity, Refusal> {
        let Some(service_key) = &self.settings.service_key else {
            return Ok(Identity::unauthenticated());
        };
        if public {
            return Ok(self.public(headers, service_key));
        }
        let credential = credential(headers)?.ok_or_else(Refusal::unauthorized)?;
        // Before the credential is checked, so that the answer does not tell whether the next guess is right.
        if let Some(client) = client {
            self.check_failed_authentications(client)?;
        }
        if let Credential::Bearer(token) = &credential
            && service_key.is(token.expose())
        {
            return Ok(Identity::service_key());
        }
        self.look_up(&credential, client).await
    }

    fn check_failed_authentications(&self, client: IpAddr) -> Result<(), Refusal> {
        let Some(lockout) = self.rates.lockout(client) else {
            return Ok(());
        };
        let mut refusal = Refusal::from(lockout.error());
        lockout.write(&mut refusal.headers);
        Err(refusal)
    }

    /// Anonymous, whatever credential is sent. A session is still forwarded to the services that validate sessions, the
    /// service key never.
    fn public(&self, headers: &HeaderMap, service_key: &ServiceKey) -> Identity {
        let mut identity = Identity::anonymous();
        identity.session = match credential(headers) {
            Ok(Some(Credential::Bearer(token))) => !service_key.is(token.expose()),
            Ok(_) => true,
            Err(_) => false,
        };
        identity
    }

    async fn look_up(
        &self,
        credential: &Credential,
        client: Option<IpAddr>,
    ) -> Result<Identity, Refusal> {
        match self.sessions.resolve(credential).await {
            Ok(resolved) => Ok(Identity {
                caller: resolved.caller,
                suspended: resolved.suspended,
                session: matches!(credential, Credential::Bearer(_)),
            }),
            Err(AuthorityError::Refused) => {
                let (Credential::Bearer(secret) | Credential::ApiKey(secret)) = credential;
                if let Some(client) = client {
                    let refused = self.rates.failed_authentication(client, secret.expose());
                    refused.await;
                }
                Err(Refusal::unauthorized())
            }
            Err(AuthorityError::Unavailable(cause)) => Err(Refusal::unavailable(cause)),
        }
    }
}
