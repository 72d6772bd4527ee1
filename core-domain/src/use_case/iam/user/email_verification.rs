//! Verification of email addresses. It needs both the token of a mailed link and access to the account. The link alone
//! is not enough, because another person may have created the account with the address.

use serde_json::json;

use super::account::{FactorRemoval, remove_all_factors};
use super::password::{find_password_account, set_by_mail};
use super::sign_in::{PasswordCredential, invalid_credentials_error};
use crate::access::{AuditEvent, Covers, PublicScope, audited, authorize_session, unowned_records};
use crate::iam::{
    Member, MemberQuery, PasskeyChallenge, PasskeyChallengeQuery, PasswordHash, User, UserQuery,
    VerificationPurpose,
};
use crate::kernel::{Code, Context, Effect, Email, Error, Result, Stored, Unowned};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{FirstFactor, KeptSession, SignInOutcome};
use crate::use_case::iam::verification::Notice;
use crate::use_case::iam::verification::{Links, Notices, Recipient, invalid_token};
use crate::use_case::iam::{api_key, session, verification};

const PURPOSE: VerificationPurpose = VerificationPurpose::EmailVerification;

/// Mails a verification link to the address if it has a user whose address is not verified. Otherwise does the same
/// work without a mail, so that the response time reveals nothing.
///
/// # Errors
/// Only those of the store.
pub async fn send_verification_email(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    links: Links<'_>,
) -> Result<()> {
    let with_email = UserQuery::WithEmail(email.clone());
    let user = unowned_records::<User>(uow).first(&with_email).await?;
    let user = user.filter(|user| !user.email_verified);
    let recipient = Recipient::of(user.as_ref());
    verification::send(cx, uow, PURPOSE, email, None, links, recipient).await?;
    Ok(())
}

/// The account whose address a token verifies.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfirmableAccount {
    /// The user of the account.
    pub user: Stored<User>,
    /// Whether the user has a password.
    pub has_password: bool,
    /// Whether the user is a member of an organization.
    pub is_member: bool,
}

/// Returns the account whose address a token verifies. Does not consume the token.
///
/// # Errors
/// `INVALID_TOKEN` if the token is unknown, used or expired.
pub async fn confirmable_account(
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<ConfirmableAccount> {
    let user = user_of_token(uow, token).await?;
    let account = find_password_account(uow, &user.id).await?;
    Ok(ConfirmableAccount {
        has_password: account.is_some_and(|account| account.password_hash.is_some()),
        is_member: is_member(uow, &user).await?,
        user,
    })
}

/// Returns the user whose address a token verifies. Does not consume the token.
pub(super) async fn user_of_token(uow: &mut dyn UnitOfWork, token: &str) -> Result<Stored<User>> {
    let found = verification::find(uow, PURPOSE, token).await?;
    let found = found.ok_or_else(invalid_token)?;
    let with_email = UserQuery::WithEmail(found.email.clone());
    let user = unowned_records::<User>(uow).first(&with_email).await?;
    user.ok_or_else(invalid_token)
}

/// Returns whether a user is a member of any organization.
pub(super) async fn is_member(uow: &mut dyn UnitOfWork, user: &User) -> Result<bool> {
    let of_user = MemberQuery::OfUser(user.id.clone());
    Ok(unowned_records::<Member>(uow)
        .first(&of_user)
        .await?
        .is_some())
}

/// The proof that the holder of a mailed token has access to the account.
#[derive(Clone, Copy, Debug)]
pub enum AccountProof<'a> {
    /// The session of the caller.
    Session,
    /// The password of the account, which was verified before.
    Password {
        /// The credential that the password was verified against.
        checked: &'a PasswordCredential,
        /// Whether the user is signed in as well, if the address was not verified before.
        sign_in: bool,
    },
}

/// The result of an email verification.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedEmail {
    /// The user with the verified address.
    pub user: Stored<User>,
    /// The outcome of the sign-in, if one was requested.
    pub signed_in: Option<SignInOutcome>,
}

/// Marks the address of the token's user as verified, and signs them in if requested. Consumes the token.
///
/// # Errors
/// - `INVALID_TOKEN` if the token is unknown, used or expired.
/// - `UNAUTHORIZED` if the caller has no session of the account.
/// - `INVALID_EMAIL_OR_PASSWORD` if the password was changed since it was verified.
pub async fn verify_email(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
    proof: AccountProof<'_>,
    notices: Notices<'_>,
) -> Result<VerifiedEmail> {
    let user = user_of_token(uow, token).await?;
    ensure_owner(cx, uow, &user, proof).await?;
    verification::consume(uow, PURPOSE, token).await?;
    let as_user = session::as_user(cx, &user);
    let is_new = !user.email_verified;
    let user = confirm_email(&as_user, scope, uow, &user, notices).await?;
    let wants_session = matches!(proof, AccountProof::Password { sign_in: true, .. });
    let signed_in = match wants_session && is_new && user.banned_at.is_none() {
        true => Some(sign_in(cx, uow, user.clone()).await?),
        false => None,
    };
    Ok(VerifiedEmail { user, signed_in })
}

async fn ensure_owner(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
    proof: AccountProof<'_>,
) -> Result<()> {
    match proof {
        AccountProof::Session => {
            let _ = authorize_session(cx)?;
            match cx.caller.person_id() {
                Some(person) if *person == user.id => Ok(()),
                _ => Err(Error::Unauthorized),
            }
        }
        AccountProof::Password { checked, .. } => {
            let account = find_password_account(uow, &user.id).await?;
            let current = account.and_then(|account| PasswordCredential::of(&account));
            match current {
                Some(current) if current == *checked => Ok(()),
                _ => Err(invalid_credentials_error()),
            }
        }
    }
}

async fn sign_in(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
) -> Result<SignInOutcome> {
    let as_user = session::as_user(cx, &user).without_conditions();
    let first = FirstFactor::Password { device: None };
    let (outcome, _) = session::begin_or_challenge(cx, uow, user, first, true).await?;
    if let SignInOutcome::SignedIn(signed_in) = &outcome {
        let event = AuditEvent {
            action: "user.signed_in",
            entity_id: signed_in.user.id.to_string(),
            details: Some(json!({ "method": PURPOSE, "sessionId": signed_in.session.id })),
            ..AuditEvent::default()
        };
        audited::record_event(&as_user, uow, event).await?;
    }
    Ok(outcome)
}

/// Marks the address of a user as verified, and notifies them by mail. The caller has checked that the user receives
/// mail there. Does nothing if the address is already verified.
pub(in crate::use_case::iam) async fn confirm_email(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &Stored<User>,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    if user.email_verified {
        return Ok(user.clone());
    }
    let cx = &cx.without_conditions();
    let mut next = user.edit();
    next.email_verified = true;
    let user = audited::replace(cx, scope, uow, user, next, "user.email_verified").await?;
    notices.send(cx, uow, &user, Notice::EmailVerified).await?;
    Ok(user)
}

/// Sets a new password for an account with an unverified address, and marks the address as verified. Removes everything
/// that gave access before.
///
/// # Errors
/// `INVALID_TOKEN` if the token is unknown, used or expired, or if the address has been verified since.
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

/// Deletes an account with an unverified address, with everything that belongs to it.
///
/// # Errors
/// - `INVALID_TOKEN` if the token is unknown, used or expired, or if the address has been verified since.
/// - `CONFLICT` if the account is a member of an organization, because other members may depend on it.
pub async fn delete_by_link(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<()> {
    let user = consume_unconfirmed(uow, token).await?;
    if is_member(uow, &user).await? {
        let message = "The account is a member of an organization, where other members may depend on it. Take it over instead.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let cx = &session::as_user(cx, &user).without_conditions();
    session::end_all(cx, scope, uow, &user.id, KeptSession::None).await?;
    remove_all_factors(cx, scope, uow, &user.id, FactorRemoval::Unverified).await?;
    let challenges = PasskeyChallengeQuery::OfUser(user.id.clone());
    unowned_records::<PasskeyChallenge>(uow)
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
