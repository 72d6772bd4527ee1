//! Changes a password, or sets a new one by a mailed link. Passwords are hashed and verified before these functions are
//! called.

use serde_json::json;

use super::account::take_over;
use super::sign_in::PasswordCredential;
use crate::access::{
    AuditEvent, PublicScope, SessionScope, SystemScope, audited, unaudited, unowned_records,
};
use crate::iam::{
    Account, AccountQuery, PASSWORD_PROVIDER, PasswordHash, Session, User, UserQuery,
    VerificationPurpose,
};
use crate::kernel::{AccountId, Code, Context, Email, Error, Result, Stored, Timestamp, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{KeptSession, SignedIn};
use crate::use_case::iam::verification::Notice;
use crate::use_case::iam::verification::{Links, Notices, Recipient, invalid_token};
use crate::use_case::iam::{api_key, session, verification};

const PURPOSE: VerificationPurpose = VerificationPurpose::PasswordReset;

/// The result of a password change.
#[derive(Clone, Debug, PartialEq)]
pub struct PasswordChange {
    /// The user whose password changed.
    pub user: Stored<User>,
    /// The session that replaces the caller's, if that one ended too.
    pub renewed: Option<SignedIn>,
}

/// Returns the error for a password that is not the user's.
#[must_use]
pub fn wrong_password() -> Error {
    Error::refused(Code::InvalidPassword, "Invalid password")
}

/// Returns the user of a session with the credential to verify their password against; `None` if they have no password.
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended or its user was deleted.
pub async fn find_own_credential(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<(Stored<User>, Option<PasswordCredential>)> {
    let user = person_of_session(scope, uow).await?;
    let account = find_password_account(uow, &user.id).await?;
    let credential = account.and_then(|account| PasswordCredential::of(&account));
    Ok((user, credential))
}

/// Returns the person of a session.
pub(in crate::use_case::iam) async fn person_of_session(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<User>> {
    let session = unowned_records::<Session>(uow)
        .find(scope.session_id())
        .await?;
    let session = session.ok_or(Error::Unauthorized)?;
    let user = unowned_records::<User>(uow).find(&session.user_id).await?;
    user.ok_or(Error::Unauthorized)
}

/// Returns the password account of a user.
pub(super) async fn find_password_account(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Option<Stored<Account>>> {
    let of = AccountQuery::PasswordOf(user.clone());
    unowned_records::<Account>(uow).first(&of).await
}

/// Records that the person of a session entered a wrong password.
///
/// # Errors
/// Only those of the store.
pub async fn record_failed_password_check(
    cx: &Context,
    _: &SessionScope,
    uow: &mut dyn UnitOfWork,
    person: &User,
) -> Result<()> {
    let event = AuditEvent {
        action: "user.password_check_failed",
        entity_id: person.id.to_string(),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await
}

/// Sets a new password if the old one has not changed since it was verified. Ends the person's other sessions, so that
/// anyone who knew the old password loses access. With `renew`, the caller's session ends too and a new one is created.
/// Notifies the person by mail.
///
/// # Errors
/// - `UNAUTHORIZED` if the session has ended.
/// - `INVALID_PASSWORD` if the password was changed since it was verified.
pub async fn change_password(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
    hash: &PasswordHash,
    renew: bool,
    notices: Notices<'_>,
) -> Result<PasswordChange> {
    let (user, seen) = find_checked_account(scope, uow, checked).await?;
    set_hash(uow, &seen, hash, None).await?;
    record(cx, uow, "user.password_changed", &user, &seen.id).await?;
    notices
        .send(cx, uow, &user, Notice::PasswordChanged)
        .await?;
    let own = unowned_records::<Session>(uow)
        .get(scope.session_id())
        .await?;
    let kept = if renew {
        KeptSession::None
    } else {
        KeptSession::Only(scope.session_id())
    };
    session::end_all(cx, scope, uow, &user.id, kept).await?;
    let renewed = match renew {
        true => Some(session::create(cx, uow, user.clone(), true, own.second_factor_at).await?),
        false => None,
    };
    Ok(PasswordChange { user, renewed })
}

/// Returns the person of a session and their password account, if the password has not changed since it was verified.
async fn find_checked_account(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
) -> Result<(Stored<User>, Stored<Account>)> {
    let user = person_of_session(scope, uow).await?;
    let seen = unowned_records::<Account>(uow)
        .find(&checked.account_id)
        .await?;
    let is_checked = |account: &Stored<Account>| {
        account.user_id == user.id && account.password_hash.as_ref() == Some(&checked.hash)
    };
    let seen = seen.filter(is_checked).ok_or_else(wrong_password)?;
    Ok((user, seen))
}

/// Returns the person of a session, if the password has not changed since it was verified.
pub(in crate::use_case::iam) async fn person_of_password(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
) -> Result<Stored<User>> {
    let (user, _) = find_checked_account(scope, uow, checked).await?;
    Ok(user)
}

async fn set_hash(
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Account>,
    hash: &PasswordHash,
    set_by_link_at: Option<Timestamp>,
) -> Result<()> {
    let now = uow.now().await?;
    let mut next = seen.edit();
    next.password_hash = Some(hash.clone());
    next.set_by_link_at = set_by_link_at;
    next.updated_at = now;
    unaudited::replace(uow, seen, next).await?;
    Ok(())
}

async fn record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    action: &'static str,
    user: &User,
    account: &AccountId,
) -> Result<()> {
    let event = AuditEvent {
        action,
        entity_id: user.id.to_string(),
        details: Some(json!({ "accountId": account })),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await
}

/// Mails a link for a new password to the address if it has a user. Otherwise does the same work without a mail, so
/// that the response time reveals nothing.
///
/// # Errors
/// Only those of the store.
pub async fn request_password_reset(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    links: Links<'_>,
) -> Result<()> {
    let with_email = UserQuery::WithEmail(email.clone());
    let user = unowned_records::<User>(uow).first(&with_email).await?;
    let recipient = Recipient::of(user.as_ref());
    verification::send(cx, uow, PURPOSE, email, None, links, recipient).await?;
    let event = AuditEvent {
        action: "user.password_reset_requested",
        entity_id: user.map_or_else(|| "unknown".to_owned(), |user| user.id.to_string()),
        details: Some(json!({ "email": email })),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await
}

/// Checks that a token can set a new password now. Call it before the expensive hashing of the new password.
///
/// # Errors
/// `INVALID_TOKEN` if the token is unknown, used or expired.
pub async fn check_reset_token(uow: &mut dyn UnitOfWork, token: &str) -> Result<()> {
    let found = verification::find(uow, PURPOSE, token).await?;
    found.map(drop).ok_or_else(invalid_token)
}

/// A new password, set with the token of a mailed link.
#[derive(Clone, Copy)]
pub struct PasswordReset<'a> {
    /// The token of the mailed link.
    pub token: &'a str,
    /// The hash of the new password.
    pub hash: &'a PasswordHash,
    /// Whether the API keys of the person are deleted as well.
    pub delete_api_keys: bool,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for PasswordReset<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordReset")
            .field("delete_api_keys", &self.delete_api_keys)
            .finish_non_exhaustive()
    }
}

/// Sets a new password for the holder of the token, once. Ends all sessions of the user and marks the address as
/// verified. The user's second factors stay, and the next sign-in asks for one.
///
/// # Errors
/// `INVALID_TOKEN` if the token is unknown, used or expired.
pub async fn reset_password(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    reset: &PasswordReset<'_>,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    let used = verification::consume(uow, PURPOSE, reset.token).await?;
    let with_email = UserQuery::WithEmail(used.email.clone());
    let user = unowned_records::<User>(uow).first(&with_email).await?;
    let user = user.ok_or_else(invalid_token)?;
    if reset.delete_api_keys {
        let cx = &session::as_user(cx, &user).without_conditions();
        api_key::delete_all_of_user(cx, scope, uow, &user.id).await?;
    }
    set_by_mail(cx, scope, uow, user, reset.hash, notices).await
}

/// Sets a new password for a user who has proved that they receive mail at their address. Marks the address as verified
/// and ends all sessions. If the address was not verified before, removes everything else that gave access as well.
pub(super) async fn set_by_mail(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
    hash: &PasswordHash,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    let cx = &session::as_user(cx, &user).without_conditions();
    let now = Some(uow.now().await?);
    let account = match find_password_account(uow, &user.id).await? {
        Some(seen) => {
            set_hash(uow, &seen, hash, now).await?;
            seen.id.clone()
        }
        None => insert_account(cx, uow, &user.id, hash, now).await?,
    };
    record(cx, uow, "user.password_reset", &user, &account).await?;
    notices.send(cx, uow, &user, Notice::PasswordReset).await?;
    if user.email_verified {
        session::end_all(cx, scope, uow, &user.id, KeptSession::None).await?;
        return Ok(user);
    }
    take_over(cx, scope, uow, &user).await
}

/// Inserts a password account. Writes no audit entry, because it is a part of an audited change.
pub(super) async fn insert_account(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    hash: &PasswordHash,
    set_by_link_at: Option<Timestamp>,
) -> Result<AccountId> {
    let now = uow.now().await?;
    let account = Account {
        id: AccountId::generate(now, cx.entropy.as_ref()),
        user_id: user.clone(),
        provider: PASSWORD_PROVIDER.to_owned(),
        password_hash: Some(hash.clone()),
        set_by_link_at,
        created_at: now,
        updated_at: now,
    };
    let account = unaudited::insert(uow, account).await?;
    Ok(account.id.clone())
}

/// Returns the accounts of the person, which are their ways to authenticate.
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended or its user was deleted.
pub async fn list_accounts(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<Account>>> {
    let user = person_of_session(scope, uow).await?;
    Ok(find_password_account(uow, &user.id)
        .await?
        .into_iter()
        .collect())
}

/// Replaces the hash that was verified by another hash of the same password, and returns whether it did. Does nothing
/// if the password has changed or was rehashed since.
///
/// # Errors
/// Only those of the store.
pub async fn rehash_password(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
    hash: &PasswordHash,
) -> Result<bool> {
    let account = unowned_records::<Account>(uow)
        .find(&checked.account_id)
        .await?;
    let is_checked = |account: &Account| account.password_hash.as_ref() == Some(&checked.hash);
    let Some(account) = account.filter(|account| is_checked(account)) else {
        return Ok(false);
    };
    let mut next = account.edit();
    next.password_hash = Some(hash.clone());
    let Some(user) = unowned_records::<User>(uow).find(&checked.user_id).await? else {
        return Ok(false);
    };
    let (cx, scope) = (
        &session::as_user(&cx.without_conditions(), &user),
        &SystemScope::new(),
    );
    audited::replace(cx, scope, uow, &account, next, "account.password_rehashed").await?;
    Ok(true)
}
