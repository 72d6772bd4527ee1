//! Limits the rejected credentials of a client.

use std::sync::Arc;

use core_domain::kernel::{Caller, Error, Result};
use http::request::Parts;

use super::App;
use super::client::{ViaGateway, peer_client};
use super::identify::{bearer, hop_key, is_trusted_hop, presented_api_key};
use super::inner::Inner;
use super::rate_limit::Counted;

/// The refusal of a request with a credential, when too many credentials of its client were rejected. To be asked before
/// the credential is checked in any way, so that the answer does not tell whether the next guess is right.
pub(super) fn locked_out<'s>(service: &'s Inner, parts: &Parts) -> Option<Counted<'s>> {
    let credential = bearer(&parts.headers)
        .or_else(|| presented_api_key(&parts.headers))
        .or_else(|| hop_key(&parts.headers));
    if credential.is_none() || !is_limited(&service.app, parts) {
        return None;
    }
    service.rates.lockout(peer_client(parts, &service.proxies)?)
}

/// Without a service key there is nothing to guess, and a gateway in this process has its own limit.
fn is_limited(app: &App, parts: &Parts) -> bool {
    app.service_key.is_some() && parts.extensions.get::<ViaGateway>().is_none()
}

/// The caller behind a request; counts a credential that is rejected.
pub(super) async fn identify(service: &Inner, parts: &mut Parts) -> Result<Arc<Caller>> {
    let app = &service.app;
    let identified = service.identify.identify(app, parts).await;
    if !is_limited(app, parts) || is_trusted_hop(app, parts) {
        return identified;
    }
    let anonymous = match &identified {
        Ok(caller) => caller.is_anonymous(),
        Err(error) => matches!(error, Error::Unauthorized),
    };
    let presented = bearer(&parts.headers).or_else(|| presented_api_key(&parts.headers));
    let rejected = hop_key(&parts.headers).or_else(|| presented.filter(|_| anonymous));
    if let Some(credential) = rejected
        && let Some(client) = peer_client(parts, &service.proxies)
    {
        let rejected = service.rates.failed_authentication(client, credential);
        rejected.await;
    }
    identified
}
