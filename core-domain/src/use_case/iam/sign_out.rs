//! Sign-out.

use crate::iam::{SessionQuery, TokenHash};
use crate::kernel::{Context, Result};
use crate::port::UnitOfWork;
use crate::shared::{Happening, audited};

/// Ends the session of this token, at once and everywhere. Whoever holds the token may; an unknown one changes nothing.
///
/// # Errors
/// When the store failed.
pub async fn sign_out(cx: &Context, uow: &mut dyn UnitOfWork, token: &str) -> Result<()> {
    let with_token = SessionQuery::WithToken(TokenHash::of(token));
    let Some(session) = uow.sessions().first(&with_token).await? else {
        return Ok(());
    };
    uow.sessions().remove(&session).await?;
    let happening = Happening {
        action: "session.signed_out",
        entity_id: session.id.to_string(),
        ..Happening::default()
    };
    audited(cx, uow, happening).await
}
