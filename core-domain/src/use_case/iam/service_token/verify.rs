//! Believing service tokens: authentication itself, so nobody is asked for a permission.

use super::keys::published;
use crate::iam::{ServiceClaims, UnverifiedToken};
use crate::kernel::Result;
use crate::port::UnitOfWork;

/// Returns the claims of a token of this issuer for this service that is valid now; `None` for any other text.
///
/// # Errors
/// When the store failed.
pub async fn verify(
    uow: &mut dyn UnitOfWork,
    token: &str,
    issuer: &str,
    audience: &str,
) -> Result<Option<ServiceClaims>> {
    let Ok(token) = UnverifiedToken::parse(token) else {
        return Ok(None);
    };
    let keys = published(uow).await?;
    let named = keys
        .iter()
        .find(|key| Some(key.kid.as_str()) == token.kid());
    let Some(public) = named.and_then(|key| key.public()) else {
        return Ok(None);
    };
    let claims = token.verified(&public, issuer, audience, uow.now().await?);
    Ok(claims.ok())
}
