//! Reading a session, or an API key, with what belongs to it.

use super::key::RecordKey;
use crate::kernel::Result;
use crate::port::{ApiKeyContext, ApiKeySecretKey, SessionContext, SessionKey, UnitOfWork};

/// The session with what belongs to it. For authentication, which is what scopes are made of.
///
/// # Errors
/// When the store failed.
pub(crate) async fn session_context(
    uow: &mut dyn UnitOfWork,
    key: SessionKey<'_>,
) -> Result<Option<SessionContext>> {
    let repositories = uow.repositories(RecordKey::new());
    Ok(repositories.session_context(key).await?)
}

/// The API key with what belongs to it; as [`session_context`].
///
/// # Errors
/// When the store failed.
pub(crate) async fn api_key_context(
    uow: &mut dyn UnitOfWork,
    secret: ApiKeySecretKey<'_>,
) -> Result<Option<ApiKeyContext>> {
    let repositories = uow.repositories(RecordKey::new());
    Ok(repositories.api_key_context(secret).await?)
}
