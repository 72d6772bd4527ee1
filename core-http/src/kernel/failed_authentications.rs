//! Limits the rejected credentials of a client.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::gateway::TrustedProxies;
use core_domain::kernel::{Caller, Error, Result};
use http::request::Parts;

use super::client::{ViaGateway, peer_client};
use super::identify::{bearer, hop_key, is_trusted_hop};
use super::inner::Inner;
use super::rate_limit::{Counted, RateLimits};
use super::{App, Identify};

/// The refusal of a request with a credential, when too many credentials of its client were rejected. To be asked before
/// the credential is checked in any way, so that the answer does not tell whether the next guess is right.
pub(super) fn locked_out<'s>(service: &'s Inner, parts: &Parts) -> Option<Counted<'s>> {
    let credential = bearer(&parts.headers).or_else(|| hop_key(&parts.headers));
    if credential.is_none() || !is_limited(&service.app, parts) {
        return None;
    }
    service.rates.lockout(peer_client(parts, &service.proxies)?)
}

/// Without a service key there is nothing to guess, and a gateway in this process has its own limit.
fn is_limited(app: &App, parts: &Parts) -> bool {
    app.service_key.is_some() && parts.extensions.get::<ViaGateway>().is_none()
}

/// Counts the credentials that another [`Identify`] rejects.
#[derive(Debug)]
pub(super) struct LimitedIdentify {
    pub(super) inner: Arc<dyn Identify>,
    pub(super) rates: Arc<RateLimits>,
    pub(super) proxies: TrustedProxies,
}

#[async_trait]
impl Identify for LimitedIdentify {
    async fn identify(&self, app: &App, request: &Parts) -> Result<Caller> {
        let identified = self.inner.identify(app, request).await;
        if !is_limited(app, request) || is_trusted_hop(app, &request.headers) {
            return identified;
        }
        let anonymous = matches!(identified, Ok(Caller::Anonymous) | Err(Error::Unauthorized));
        let rejected =
            hop_key(&request.headers).or_else(|| bearer(&request.headers).filter(|_| anonymous));
        if let Some(credential) = rejected
            && let Some(client) = peer_client(request, &self.proxies)
        {
            self.rates.failed_authentication(client, credential).await;
        }
        identified
    }
}
