//! Sign-in with an address and a password. The slow check lies between [`password_credential`] and [`sign_in`].

use serde_json::json;

use crate::access::{AuditEvent, PublicScope, audited, unowned};
use crate::iam::{Account, AccountQuery, PasswordHash, User, UserQuery};
use crate::kernel::{AccountId, Code, Context, Email, Error, Result, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, SignInOutcome};

/// The password account behind an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordCredential {
    /// Whose it is.
    pub user_id: UserId,
    /// The account.
    pub account_id: AccountId,
    /// The hash to check against.
    pub hash: PasswordHash,
}

impl PasswordCredential {
    /// That of an account, if it has a password.
    pub(super) fn of(account: &Account) -> Option<Self> {
        Some(Self {
            user_id: account.user_id.clone(),
            account_id: account.id.clone(),
            hash: account.password_hash.clone()?,
        })
    }
}

/// A sign-in whose password was found right.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// What the password was checked against.
    pub checked: PasswordCredential,
    /// Whether the browser shall keep the session.
    pub remembered: bool,
}

/// The password to check for an address; `None` when nobody has it, or has no password.
///
/// # Errors
/// When the store failed.
pub async fn password_credential(
    uow: &mut dyn UnitOfWork,
    email: &Email,
) -> Result<Option<PasswordCredential>> {
    let with_email = UserQuery::WithEmail(email.clone());
    let Some(user) = unowned::<User>(uow).first(&with_email).await? else {
        return Ok(None);
    };
    let password_of = AccountQuery::PasswordOf(user.id.clone());
    let account = unowned::<Account>(uow).first(&password_of).await?;
    Ok(account.and_then(|account| PasswordCredential::of(&account)))
}

/// The one refusal of a sign-in: the same whether the address or the password was wrong.
fn refusal() -> Error {
    Error::refused(Code::InvalidEmailOrPassword, "Invalid email or password")
}

/// Begins a session, or asks for the second factor of somebody who has one, provided the password is still the one that was
/// checked.
///
/// # Errors
/// `INVALID_EMAIL_OR_PASSWORD` when it was changed in between.
pub async fn sign_in(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    input: &SignIn,
) -> Result<SignInOutcome> {
    let checked = &input.checked;
    let account = unowned::<Account>(uow).find(&checked.account_id).await?;
    let unchanged = account.is_some_and(|a| a.password_hash.as_ref() == Some(&checked.hash));
    let user = unowned::<User>(uow).find(&checked.user_id).await?;
    let Some(user) = user.filter(|_| unchanged) else {
        return Err(refusal());
    };
    let outcome = session::begin_or_challenge(cx, uow, user, input.remembered).await?;
    let SignInOutcome::SignedIn(signed_in) = &outcome else {
        return Ok(outcome);
    };
    let event = AuditEvent {
        action: "user.signed_in",
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({
            "accountId": checked.account_id,
            "sessionId": signed_in.session.id,
        })),
        ..AuditEvent::default()
    };
    audited::event(&session::as_user(cx, &signed_in.user), uow, event).await?;
    Ok(outcome)
}

/// Records a sign-in that failed, and answers the refusal.
///
/// # Errors
/// When the store failed.
pub async fn sign_in_failed(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    known: Option<&PasswordCredential>,
) -> Result<Error> {
    let event = AuditEvent {
        action: "user.sign_in_failed",
        entity_id: known.map_or_else(|| "unknown".to_owned(), |k| k.user_id.to_string()),
        details: Some(json!({ "email": email, "accountId": known.map(|k| &k.account_id) })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await?;
    Ok(refusal())
}
