//! A password that is about to be looked at: counted before, and refused when too many were wrong.

use core_domain::kernel::{Email, Result};
use core_domain::port::transact;
use core_domain::use_case::iam::user;

use super::config::Iam;
use super::failed_sign_ins::Attempt;
use crate::kernel::Cx;

/// Counts a password of an account that is about to be looked at. The first refusal of a delay of the account, or of a window of
/// the client, is written down: not each, so that nobody floods the audit.
///
/// # Errors
/// `RATE_LIMITED` when too many were wrong, whether this one is or not.
pub(super) async fn begin_attempt(cx: &Cx, iam: &Iam, email: &Email) -> Result<Attempt> {
    let (client, now) = (cx.request.ip.as_deref(), cx.app.clock.now());
    let refused = match iam.failed_sign_ins.begin(client, email, now).await {
        Ok(attempt) => return Ok(attempt),
        Err(refused) => refused,
    };
    if let Some(lockout) = &refused.lockout {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::locked_out(cx, uow, email, lockout))
        })
        .await?;
    }
    Err(refused.error)
}
