//! What registers and verifies passkeys: what the builder was given, or WebAuthn for the host of IAM's address.

use std::sync::Arc;

use core_domain::port::Passkeys;

use crate::SuiteBuilder;

/// `None` when there are none.
pub(crate) fn passkeys(builder: &SuiteBuilder) -> Option<Arc<dyn Passkeys>> {
    builder.passkeys.clone().or_else(|| built_in(builder))
}

#[cfg(feature = "webauthn")]
fn built_in(builder: &SuiteBuilder) -> Option<Arc<dyn Passkeys>> {
    let origins = &builder.settings.gateway.allowed_origins;
    match core_webauthn::Webauthn::new(&builder.iam_url, origins) {
        Ok(webauthn) => Some(Arc::new(webauthn)),
        Err(error) => {
            tracing::info!(%error, "there are no passkeys");
            None
        }
    }
}

#[cfg(not(feature = "webauthn"))]
fn built_in(_: &SuiteBuilder) -> Option<Arc<dyn Passkeys>> {
    None
}
