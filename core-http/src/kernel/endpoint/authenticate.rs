//! Authentication of the caller of a request, and the lockout of clients with too many rejected credentials.

use std::sync::Arc;

use core_domain::kernel::{Caller, Error, Result};
use http::request::Parts;

use super::compiled::CompiledService;
use crate::kernel::admission::rate_limit::RateDecision;
use crate::kernel::process::app::App;
use crate::kernel::request::client::{ViaGateway, peer_client};
use crate::kernel::request::credentials::{
    bearer, hop_credential, is_trusted_hop, presented_api_key,
};

/// Returns the lockout that applies to a request: it has a credential, and too many credentials of its client were
/// rejected. Call it before the credential is checked, so that the response does not reveal whether a guess is correct.
pub(crate) fn locked_out<'s>(
    service: &'s CompiledService,
    parts: &Parts,
) -> Option<RateDecision<'s>> {
    let credential = bearer(&parts.headers)
        .or_else(|| presented_api_key(&parts.headers))
        .or_else(|| hop_credential(&parts.headers));
    if credential.is_none() || !is_limited(&service.app, parts) {
        return None;
    }
    service.rates.lockout(peer_client(parts, &service.proxies)?)
}

/// Returns whether rejected credentials are counted. Without a service key there is nothing to guess, and a gateway in
/// this process counts them itself.
fn is_limited(app: &App, parts: &Parts) -> bool {
    app.service_key.is_some() && parts.extensions.get::<ViaGateway>().is_none()
}

/// Authenticates the caller of a request, and counts a rejected credential.
///
/// # Errors
/// Those of the service's [`Identify`](crate::kernel::Identify).
pub(crate) async fn identify(service: &CompiledService, parts: &mut Parts) -> Result<Arc<Caller>> {
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
    let rejected = hop_credential(&parts.headers).or_else(|| presented.filter(|_| anonymous));
    if let Some(credential) = rejected
        && let Some(client) = peer_client(parts, &service.proxies)
    {
        let rejected = service.rates.count_rejected_credential(client, credential);
        rejected.await;
    }
    identified
}
