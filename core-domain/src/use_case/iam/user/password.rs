//! Changing a password, and setting a new one by a link that is sent by mail. Hashes are made and checked before.

use serde_json::json;

use super::account::take_over;
use super::sign_in::PasswordCredential;
use crate::access::{
    AuditEvent, PublicScope, SessionScope, SystemScope, audited, unaudited, unowned,
};
use crate::iam::{
    Account, AccountQuery, CREDENTIAL, PasswordHash, Session, User, UserQuery, VerificationPurpose,
};
use crate::kernel::{AccountId, Code, Context, Email, Error, Result, Stored, Timestamp, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{Kept, SignedIn};
use crate::use_case::iam::verification::Notice;
use crate::use_case::iam::verification::{Links, Notices, Recipient, invalid_token};
use crate::use_case::iam::{api_key, session, verification};

const PURPOSE: VerificationPurpose = VerificationPurpose::PasswordReset;

/// What a password change led to.
#[derive(Clone, Debug, PartialEq)]
pub struct PasswordChanged {
    /// The user.
    pub user: Stored<User>,
    /// The session that stands in the place of the caller's, where all were to end.
    pub renewed: Option<SignedIn>,
}

/// The refusal of a password that is not the user's.
#[must_use]
pub fn wrong_password() -> Error {
    Error::refused(Code::InvalidPassword, "Invalid password")
}

/// The password of the person behind a session, to be checked; `None` when they have none.
///
/// # Errors
/// `UNAUTHORIZED` when the session or its user is gone.
pub async fn own_credential(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<(Stored<User>, Option<PasswordCredential>)> {
    let user = owner(scope, uow).await?;
    let account = find_password_account(uow, &user.id).await?;
    let credential = account.and_then(|account| PasswordCredential::of(&account));
    Ok((user, credential))
}

async fn owner(scope: &SessionScope, uow: &mut dyn UnitOfWork) -> Result<Stored<User>> {
    let session = unowned::<Session>(uow).find(scope.session_id()).await?;
    let session = session.ok_or(Error::Unauthorized)?;
    let user = unowned::<User>(uow).find(&session.user_id).await?;
    user.ok_or(Error::Unauthorized)
}

/// Returns the password account of a user.
pub(super) async fn find_password_account(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Option<Stored<Account>>> {
    let of = AccountQuery::PasswordOf(user.clone());
    unowned::<Account>(uow).first(&of).await
}

/// Records that the person behind a session showed a password that is not theirs.
///
/// # Errors
/// When the store failed.
pub async fn password_check_failed(
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
    audited::event(cx, uow, event).await
}

/// Sets a new password, provided the old one is still the one that was checked. The person's other sessions end: whoever
/// knew the old password is out. With `renew` the caller's ends as well, and a new one begins.
///
/// # Errors
/// `INVALID_PASSWORD` when the password was changed in between.
pub async fn change_password(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
    hash: &PasswordHash,
    renew: bool,
    notices: Notices<'_>,
) -> Result<PasswordChanged> {
    let (user, seen) = unchanged(scope, uow, checked).await?;
    set_hash(uow, &seen, hash, None).await?;
    record(cx, uow, "user.password_changed", &user, &seen.id).await?;
    notices
        .tell(cx, uow, &user, Notice::PasswordChanged)
        .await?;
    let own = unowned::<Session>(uow).get(scope.session_id()).await?;
    let kept = if renew {
        Kept::None
    } else {
        Kept::Only(scope.session_id())
    };
    session::end_all(cx, scope, uow, &user.id, kept).await?;
    let renewed = match renew {
        true => Some(session::begin(cx, uow, user.clone(), true, own.second_factor_at).await?),
        false => None,
    };
    Ok(PasswordChanged { user, renewed })
}

/// The person behind a session and their password account, provided the password is still the one that was checked.
async fn unchanged(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
) -> Result<(Stored<User>, Stored<Account>)> {
    let user = owner(scope, uow).await?;
    let seen = unowned::<Account>(uow).find(&checked.account_id).await?;
    let is_checked = |account: &Stored<Account>| {
        account.user_id == user.id && account.password_hash.as_ref() == Some(&checked.hash)
    };
    let seen = seen.filter(is_checked).ok_or_else(wrong_password)?;
    Ok((user, seen))
}

/// The person behind a session, provided the password is still the one that was checked.
pub(in crate::use_case::iam) async fn person_of_password(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
) -> Result<Stored<User>> {
    let (user, _) = unchanged(scope, uow, checked).await?;
    Ok(user)
}

/// The person behind a session.
pub(in crate::use_case::iam) async fn person_of_session(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<User>> {
    owner(scope, uow).await
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
    audited::event(cx, uow, event).await
}

/// Sends a link for a new password to an address that has a user. For another one the same work is done.
///
/// # Errors
/// When the store failed.
pub async fn request_password_reset(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    links: Links<'_>,
) -> Result<()> {
    let with_email = UserQuery::WithEmail(email.clone());
    let user = unowned::<User>(uow).first(&with_email).await?;
    let recipient = Recipient::of(user.as_ref());
    verification::send(cx, uow, PURPOSE, email, None, links, recipient).await?;
    let event = AuditEvent {
        action: "user.password_reset_requested",
        entity_id: user.map_or_else(|| "unknown".to_owned(), |user| user.id.to_string()),
        details: Some(json!({ "email": email })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await
}

/// Tells whether a token is good for a new password now; look before a hash is made for it.
///
/// # Errors
/// `INVALID_TOKEN`.
pub async fn check_reset_token(uow: &mut dyn UnitOfWork, token: &str) -> Result<()> {
    let found = verification::find(uow, PURPOSE, token).await?;
    found.map(drop).ok_or_else(invalid_token)
}

/// A new password by the token of a link.
#[derive(Clone, Copy)]
pub struct PasswordReset<'a> {
    /// The token of the link.
    pub token: &'a str,
    /// The hash of the new password.
    pub hash: &'a PasswordHash,
    /// Whether the API keys of the person are deleted as well.
    pub delete_api_keys: bool,
}

// The token stays out of logs.
impl std::fmt::Debug for PasswordReset<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordReset")
            .field("delete_api_keys", &self.delete_api_keys)
            .finish_non_exhaustive()
    }
}

/// Sets a new password for whoever has the token, once. All their sessions end, and the address counts as theirs. Their second
/// factors stay: the next sign-in asks for one.
///
/// # Errors
/// `INVALID_TOKEN`.
pub async fn reset_password(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    reset: &PasswordReset<'_>,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    let used = verification::consume(uow, PURPOSE, reset.token).await?;
    let with_email = UserQuery::WithEmail(used.email.clone());
    let user = unowned::<User>(uow).first(&with_email).await?;
    let user = user.ok_or_else(invalid_token)?;
    if reset.delete_api_keys {
        let cx = &session::as_user(cx, &user).consequence();
        api_key::delete_all_of_user(cx, scope, uow, &user.id).await?;
    }
    set_by_mail(cx, scope, uow, user, reset.hash, notices).await
}

/// Sets a new password for a user who has shown that they read mail at their address, which is confirmed from now on. All their
/// sessions end; if nobody had confirmed the address before, everything else that gives access goes as well.
pub(super) async fn set_by_mail(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
    hash: &PasswordHash,
    notices: Notices<'_>,
) -> Result<Stored<User>> {
    let cx = &session::as_user(cx, &user).consequence();
    let now = Some(uow.now().await?);
    let account = match find_password_account(uow, &user.id).await? {
        Some(seen) => {
            set_hash(uow, &seen, hash, now).await?;
            seen.id.clone()
        }
        None => insert_account(cx, uow, &user.id, hash, now).await?,
    };
    record(cx, uow, "user.password_reset", &user, &account).await?;
    notices.tell(cx, uow, &user, Notice::PasswordReset).await?;
    if user.email_verified {
        session::end_all(cx, scope, uow, &user.id, Kept::None).await?;
        return Ok(user);
    }
    take_over(cx, scope, uow, &user).await
}

/// Adds a password account; its entry is that of what it is a part of.
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
        provider: CREDENTIAL.to_owned(),
        password_hash: Some(hash.clone()),
        set_by_link_at,
        created_at: now,
        updated_at: now,
    };
    let account = unaudited::insert(uow, account).await?;
    Ok(account.id.clone())
}

/// The ways the person proves who they are.
///
/// # Errors
/// `UNAUTHORIZED` when the session or its user is gone.
pub async fn list_accounts(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<Account>>> {
    let user = owner(scope, uow).await?;
    Ok(find_password_account(uow, &user.id)
        .await?
        .into_iter()
        .collect())
}

/// Puts another hash of the same password in the place of the one that was checked; tells whether it did. When the password
/// was changed in between, or hashed anew by another sign-in, everything stays as it is.
///
/// # Errors
/// When the store failed.
pub async fn rehash_password(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
    hash: &PasswordHash,
) -> Result<bool> {
    let account = unowned::<Account>(uow).find(&checked.account_id).await?;
    let is_checked = |account: &Account| account.password_hash.as_ref() == Some(&checked.hash);
    let Some(account) = account.filter(|account| is_checked(account)) else {
        return Ok(false);
    };
    let mut next = account.edit();
    next.password_hash = Some(hash.clone());
    let Some(user) = unowned::<User>(uow).find(&checked.user_id).await? else {
        return Ok(false);
    };
    let (cx, scope) = (
        &session::as_user(&cx.consequence(), &user),
        &SystemScope::new(),
    );
    audited::replace(cx, scope, uow, &account, next, "account.password_rehashed").await?;
    Ok(true)
}
