//! What the owner of an address does about an account that a stranger made with it: take it over, or delete it. Both need the
//! token of a link that was sent to the address, and are refused once the address is confirmed.

use super::email_verification::{is_member, user_of_token};
use super::factors::{FactorRemoval, remove_all_factors};
use super::password::{find_password_account, set_by_mail};
use crate::access::{PublicScope, audited, unowned};
use crate::iam::{
    PasskeyChallenge, PasskeyChallengeQuery, PasswordHash, User, VerificationPurpose,
};
use crate::kernel::{Code, Context, Effect, Error, Result, Stored};
use crate::port::UnitOfWork;
use crate::use_case::iam::api_key;
use crate::use_case::iam::session::{self, Kept};
use crate::use_case::iam::verification::{self, Notices, invalid_token};

const PURPOSE: VerificationPurpose = VerificationPurpose::EmailVerification;

/// Sets a new password for an account whose address nobody has confirmed, and confirms it. Everything that gave access before is
/// removed.
///
/// # Errors
/// `INVALID_TOKEN`, also when the address was confirmed meanwhile.
pub async fn take_over_by_link(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
    hash: &PasswordHash,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    let user = consume_unconfirmed(uow, token).await?;
    set_by_mail(cx, scope, uow, user, hash, notices).await
}

/// Deletes an account whose address nobody has confirmed, with everything that belongs to it.
///
/// # Errors
/// `INVALID_TOKEN`, also when the address was confirmed meanwhile; `CONFLICT` when the account is a member of an organization,
/// because others may depend on it.
pub async fn delete_by_link(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<()> {
    let user = consume_unconfirmed(uow, token).await?;
    if is_member(uow, &user).await? {
        let message = "The account is a member of an organization, where others may depend on it. Take it over instead.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let cx = &session::as_user(cx, &user).consequence();
    session::end_all(cx, scope, uow, &user.id, Kept::None).await?;
    remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::Unverified).await?;
    let challenges = PasskeyChallengeQuery::OfUser(user.id.clone());
    unowned::<PasskeyChallenge>(uow)
        .remove_all(&challenges)
        .await?;
    api_key::remove_of_user(uow, &user.id).await?;
    if let Some(account) = find_password_account(uow, &user.id).await? {
        audited::remove(cx, scope, uow, &account, "account.unverified_removed").await?;
    }
    uow.effects()
        .add(Effect::UserAccessChanged(user.id.clone()));
    audited::remove(cx, scope, uow, &user, "user.deleted").await
}

async fn consume_unconfirmed(uow: &mut dyn UnitOfWork, token: &str) -> Result<Stored<User>> {
    let user = user_of_token(uow, token).await?;
    if user.email_verified {
        return Err(invalid_token());
    }
    verification::consume(uow, PURPOSE, token).await?;
    Ok(user)
}
