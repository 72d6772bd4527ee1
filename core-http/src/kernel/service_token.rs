//! Service tokens as credentials of requests.

use core_domain::iam::{ServiceClaims, UnverifiedToken};
use core_domain::kernel::Result;
use core_domain::port::Mode;
use core_domain::use_case::iam::service_token::verify;

use super::App;

/// Whether a text could be a service token; otherwise the store need not be asked.
pub(super) fn could_be(presented: &str) -> bool {
    UnverifiedToken::parse(presented).is_ok()
}

/// The claims of a token for the service of this name; `None` for any other text, and while tokens cannot be checked.
pub(super) async fn claims_of(app: &App, audience: &str, presented: &str) -> Option<ServiceClaims> {
    match verified(app, audience, presented).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::warn!(?error, "a service token could not be checked");
            None
        }
    }
}

async fn verified(app: &App, audience: &str, token: &str) -> Result<Option<ServiceClaims>> {
    let mut uow = app.store.begin(Mode::Auto).await?;
    let claims = verify(uow.as_mut(), token, &app.issuer, audience).await;
    uow.rollback().await;
    claims
}
