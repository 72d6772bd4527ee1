//! Proving that one reads mail at one's address.

use crate::access::{PublicScope, audited, unowned};
use crate::iam::{User, UserQuery, VerificationPurpose};
use crate::kernel::{Context, Email, Result, Stored};
use crate::port::UnitOfWork;
use crate::use_case::iam::session;
use crate::use_case::iam::verification::{self, Links, invalid_token};

const PURPOSE: VerificationPurpose = VerificationPurpose::EmailVerification;

/// Sends a link to an address that has a user who has not proved it is theirs. For another one the same work is done.
///
/// # Errors
/// When the store failed.
pub async fn send_verification_email(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    links: Links<'_>,
) -> Result<()> {
    let with_email = UserQuery::WithEmail(email.clone());
    let user = unowned::<User>(uow).first(&with_email).await?;
    let links = user.filter(|user| !user.email_verified).map(|_| links);
    verification::send(cx, uow, PURPOSE, email, None, links).await
}

/// Takes the address of the token's user as theirs. The token goes.
///
/// # Errors
/// `INVALID_TOKEN`.
pub async fn verify_email(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Stored<User>> {
    let used = verification::consume(uow, PURPOSE, token).await?;
    let with_email = UserQuery::WithEmail(used.email.clone());
    let user = unowned::<User>(uow).first(&with_email).await?;
    let user = user.ok_or_else(invalid_token)?;
    let mut next = user.edit();
    next.email_verified = true;
    let cx = session::as_user(cx, &user).consequence();
    audited::replace(&cx, scope, uow, &user, next, "user.email_verified").await
}
