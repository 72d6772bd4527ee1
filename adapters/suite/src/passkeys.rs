//! Chooses the passkey implementation: the one set on the builder, or WebAuthn for the host of IAM's URL.

use std::sync::Arc;

use core_domain::port::Passkeys;

use crate::SuiteBuilder;

/// Returns the passkey implementation, or `None` if passkeys are unavailable.
pub(crate) fn passkeys(builder: &SuiteBuilder) -> Option<Arc<dyn Passkeys>> {
    builder.passkeys.clone().or_else(|| built_in(builder))
}

#[cfg(feature = "webauthn")]
fn built_in(builder: &SuiteBuilder) -> Option<Arc<dyn Passkeys>> {
    let origins = &builder.settings.gateway.allowed_origins;
    match core_webauthn::Webauthn::new(&builder.iam_url, origins) {
        Ok(webauthn) => Some(Arc::new(webauthn)),
        Err(error) => {
            tracing::info!(%error, "passkeys are unavailable");
            None
        }
    }
}

#[cfg(not(feature = "webauthn"))]
fn built_in(_: &SuiteBuilder) -> Option<Arc<dyn Passkeys>> {
    None
}
