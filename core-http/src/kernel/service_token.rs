//! Service tokens as credentials of requests.

use core_domain::iam::UnverifiedToken;
use core_domain::kernel::Result;
use core_domain::port::Mode;
use core_domain::use_case::iam::service_token::verify;

use super::App;

/// Whether a text could be a service token; otherwise the store need not be asked.
pub(super) fn could_be(presented: &str) -> bool {
    UnverifiedToken::parse(presented).is_ok()
}

/// The name of the service whose token this is, for the service of this name; `None` for any other text, and while tokens
/// cannot be checked.
pub(super) async fn holder(app: &App, audience: &str, presented: &str) -> Option<&'static str> {
    match verified(app, audience, presented).await {
        Ok(service) => service,
        Err(error) => {
            tracing::warn!(?error, "a service token could not be checked");
            None
        }
    }
}

async fn verified(app: &App, audience: &str, token: &str) -> Result<Option<&'static str>> {
    let mut uow = app.store.begin(Mode::Auto).await?;
    let service = verify(uow.as_mut(), token, &app.issuer, audience).await;
    uow.rollback().await;
    Ok(service?.map(|service| service.as_str()))
}
