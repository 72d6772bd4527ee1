//! The gateway's question: who is behind this token, and is their platform suspended.

use super::resolve::{caller, live_session, place_of};
use super::suspension::platform_is_suspended;
use crate::iam::Standing;
use crate::kernel::{Caller, Result, Timestamp};
use crate::port::UnitOfWork;

/// What is known of the holder of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorized {
    /// Who calls.
    pub caller: Caller,
    /// Whether the caller's platform is suspended.
    pub suspended: bool,
    /// When the session ends by itself.
    pub expires_at: Timestamp,
    /// Whether the session should be extended now, with [`super::extend_session`] in a write unit.
    pub extension_due: bool,
}

/// Finds who is behind a token; `None` when nobody is. One read unit is enough.
///
/// # Errors
/// When the store failed.
pub async fn authorize(uow: &mut dyn UnitOfWork, token: &str) -> Result<Option<Authorized>> {
    let Some((session, standing)) = live_session(uow, token).await? else {
        return Ok(None);
    };
    let place = place_of(uow, &session).await?;
    let platform = place
        .as_ref()
        .and_then(|place| place.organization.platform_id.clone());
    let suspended = match platform {
        Some(platform) => platform_is_suspended(uow, &platform).await?,
        None => false,
    };
    Ok(Some(Authorized {
        caller: caller(&session, place.as_ref()),
        suspended,
        expires_at: session.expires_at,
        extension_due: matches!(standing, Standing::ExtendTo(_)),
    }))
}
