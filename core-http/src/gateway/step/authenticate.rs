//! Step 9: authentication by the service key, a session or an API key. The first credential in this order decides.

use std::net::IpAddr;

use core_domain::gateway::{Credential, CredentialError, read_credential};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Method, Uri};

use super::Steps;
use crate::gateway::authority::{AuthorityError, ResolvedCredential};
use crate::gateway::event_stream::PresentedCredential;
use crate::gateway::identity::Identity;
use crate::gateway::refusal::Refusal;
use crate::kernel::request::header_names;
use crate::kernel::{ServiceKey, TokenDigest};

fn credential(headers: &HeaderMap) -> Result<Option<Credential>, CredentialError> {
    let lines = |name: &HeaderName| {
        let lines = headers.get_all(name).into_iter();
        lines.map(http::HeaderValue::as_bytes)
    };
    read_credential(lines(&AUTHORIZATION), lines(&header_names::API_KEY))
}

impl Steps {
    /// Determines the caller of a request.
    pub(super) async fn identify(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        client: Option<IpAddr>,
    ) -> Result<Identity, Refusal> {
        let Some(service_key) = &self.settings.service_key else {
            return Ok(Identity::unauthenticated_service());
        };
        if self.settings.is_public(method, uri.path()) {
            return Ok(public(headers, service_key));
        }
        let credential = credential(headers)
            .inspect_err(|error| self.metrics.count_unreadable_credential(error))?;
        let Some(credential) = credential else {
            self.metrics.count_missing_credential();
            return Err(Refusal::unauthorized());
        };
        // Runs before the credential is checked. Otherwise the response would reveal whether the next guess is right.
        if let Some(client) = client {
            self.check_failed_authentications(client)?;
        }
        let (Credential::Bearer(secret) | Credential::ApiKey(secret)) = &credential;
        let digest = TokenDigest::of(secret.expose());
        if matches!(credential, Credential::Bearer(_)) && service_key.has_digest(&digest) {
            return Ok(Identity::service_key());
        }
        let presented = PresentedCredential { credential, digest };
        self.look_up(presented, client).await
    }

    fn check_failed_authentications(&self, client: IpAddr) -> Result<(), Refusal> {
        let Some(lockout) = self.rates.lockout(client) else {
            return Ok(());
        };
        self.metrics.count_lockout();
        let mut refusal = Refusal::from(lockout.error());
        lockout.write(&mut refusal.headers);
        Err(refusal)
    }

    async fn look_up(
        &self,
        presented: PresentedCredential,
        client: Option<IpAddr>,
    ) -> Result<Identity, Refusal> {
        let credential = &presented.credential;
        match self.sessions.resolve(credential, &presented.digest).await {
            Ok(resolved) => {
                self.count_use(&resolved).await?;
                Ok(Identity {
                    caller: resolved.caller,
                    suspended: resolved.suspended,
                    session: matches!(credential, Credential::Bearer(_)),
                    credential: Some(presented),
                })
            }
            Err(AuthorityError::Refused) => {
                self.metrics.count_rejected_credential();
                let (Credential::Bearer(secret) | Credential::ApiKey(secret)) = credential;
                if let Some(client) = client {
                    let refused = self
                        .rates
                        .count_rejected_credential(client, secret.expose());
                    Box::pin(refused).await;
                }
                Err(Refusal::unauthorized())
            }
            Err(AuthorityError::Unavailable(cause)) => {
                self.metrics.count_unavailable_authority();
                Err(Refusal::unavailable(cause))
            }
        }
    }
}

impl Steps {
    /// Counts the request against the limit of its API key, if the key has a limit of its own.
    async fn count_use(&self, resolved: &ResolvedCredential) -> Result<(), Refusal> {
        let limit = resolved.requests_per_minute;
        let (Some(per_minute), Some(key)) = (limit, resolved.caller.api_key_id()) else {
            return Ok(());
        };
        // Boxed, so that the future for sessions stays small.
        let usage = Box::pin(self.rates.use_api_key(key, per_minute)).await;
        let Some(error) = usage.refusal() else {
            return Ok(());
        };
        let mut refusal = Refusal::from(error);
        usage.write(&mut refusal.headers);
        Err(refusal)
    }
}

/// Returns the anonymous identity of a request to a public route. Its session, but never the service key, is forwarded
/// to the services that validate sessions.
fn public(headers: &HeaderMap, service_key: &ServiceKey) -> Identity {
    let mut identity = Identity::anonymous();
    identity.session = match credential(headers) {
        Ok(Some(Credential::Bearer(token))) => !service_key.is(token.expose()),
        Ok(_) => true,
        Err(_) => false,
    };
    identity
}
