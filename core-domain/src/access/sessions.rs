//! Reading a session with what belongs to it.

use super::key::RecordKey;
use crate::kernel::Result;
use crate::port::{SessionContext, SessionKey, UnitOfWork};

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
