//! Sign-in with an address and a password. The slow check lies between [`password_credential`] and [`sign_in`].

use std::time::Duration;

use serde_json::json;

use crate::access::{AuditEvent, PublicScope, audited, unowned};
use crate::iam::{Account, AccountQuery, PasswordHash, User, UserQuery, VerificationPurpose};
use crate::kernel::{AccountId, Code, Context, Email, Error, Result, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, FirstFactor, SignInOutcome};
use crate::use_case::iam::verification::{self, Links, Recipient};

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
    /// Whether the address must be confirmed.
    pub confirmed_only: bool,
    /// The token of the device, if it has one: it may be trusted.
    pub device: Option<String>,
}

/// What the right password led to.
#[derive(Clone, PartialEq)]
pub struct PasswordSignIn {
    /// A session, or the question for the second factor.
    pub outcome: SignInOutcome,
    /// The next token of the device, where trusting it took the place of the second factor. Shown now and never again.
    pub device: Option<String>,
}

// The token stays out of logs.
impl std::fmt::Debug for PasswordSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordSignIn")
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
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
pub(super) fn refusal() -> Error {
    Error::refused(Code::InvalidEmailOrPassword, "Invalid email or password")
}

/// Begins a session, or asks for the second factor of somebody who has one, provided the password is still the one that was
/// checked.
///
/// # Errors
/// `INVALID_EMAIL_OR_PASSWORD` when it was changed in between; `EMAIL_NOT_VERIFIED` when the address must be confirmed and is
/// not: go on with [`refuse_unconfirmed`].
pub async fn sign_in(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    input: &SignIn,
) -> Result<PasswordSignIn> {
    let checked = &input.checked;
    let account = unowned::<Account>(uow).find(&checked.account_id).await?;
    let account = account.filter(|a| a.password_hash.as_ref() == Some(&checked.hash));
    let user = unowned::<User>(uow).find(&checked.user_id).await?;
    let (Some(account), Some(user)) = (account, user) else {
        return Err(refusal());
    };
    if input.confirmed_only && !user.email_verified {
        return Err(not_verified());
    }
    let first = match account.set_by_link_at {
        None => FirstFactor::Password {
            device: input.device.as_deref(),
        },
        Some(_) => FirstFactor::Link,
    };
    let begun = session::begin_or_challenge(cx, uow, user, first, input.remembered).await?;
    let (outcome, device) = begun;
    let SignInOutcome::SignedIn(signed_in) = &outcome else {
        return Ok(PasswordSignIn { outcome, device });
    };
    let event = AuditEvent {
        action: "user.signed_in",
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({
            "accountId": checked.account_id,
            "sessionId": signed_in.session.id,
            "trustedDevice": device.is_some(),
        })),
        ..AuditEvent::default()
    };
    audited::event(&session::as_user(cx, &signed_in.user), uow, event).await?;
    Ok(PasswordSignIn { outcome, device })
}

fn not_verified() -> Error {
    Error::refused(Code::EmailNotVerified, "Email not verified")
}

/// Refuses a person who has not confirmed their address.
///
/// # Errors
/// `EMAIL_NOT_VERIFIED`.
pub(in crate::use_case::iam) fn ensure_confirmed(user: &User) -> Result<()> {
    if user.email_verified {
        Ok(())
    } else {
        Err(not_verified())
    }
}

/// Records a sign-in that was refused because its address is not confirmed, sends a link that confirms it, and answers the
/// refusal.
///
/// # Errors
/// When the store failed.
pub async fn refuse_unconfirmed(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    checked: &PasswordCredential,
    email: &Email,
    links: Links<'_>,
) -> Result<Error> {
    let purpose = VerificationPurpose::EmailVerification;
    let link_sent =
        verification::send(cx, uow, purpose, email, None, links, Recipient::Address).await?;
    let event = AuditEvent {
        action: "user.sign_in_refused",
        entity_id: checked.user_id.to_string(),
        details: Some(json!({ "reason": Code::EmailNotVerified, "linkSent": link_sent })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await?;
    Ok(not_verified())
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

/// Why no password is taken for a while: too many were wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lockout {
    /// Of the account, whoever tried.
    OfAccount {
        /// How many were.
        failures: u32,
        /// How long it goes on.
        left: Duration,
    },
    /// Of the client, whatever the account.
    OfClient {
        /// The name of the limit that it has reached.
        limit: String,
        /// How long it goes on at most.
        left: Duration,
    },
}

/// Records that a password was not looked at. Whether the address has a user makes no other difference.
///
/// # Errors
/// When the store failed.
pub async fn locked_out(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    lockout: &Lockout,
) -> Result<()> {
    let seconds = |left: &Duration| left.as_secs().max(1);
    let unknown = || "unknown".to_owned();
    let event = match lockout {
        Lockout::OfAccount { failures, left } => {
            let with_email = UserQuery::WithEmail(email.clone());
            let user = unowned::<User>(uow).first(&with_email).await?;
            AuditEvent {
                action: "user.locked_out",
                entity_id: user.map_or_else(unknown, |user| user.id.to_string()),
                details: Some(json!({
                    "email": email, "failures": failures, "retryAfter": seconds(left),
                })),
                ..AuditEvent::default()
            }
        }
        Lockout::OfClient { limit, left } => AuditEvent {
            action: "client.locked_out",
            entity_id: cx.request.ip.clone().unwrap_or_else(unknown),
            details: Some(json!({
                "email": email, "limit": limit, "retryAfter": seconds(left),
            })),
            ..AuditEvent::default()
        },
    };
    audited::event(cx, uow, event).await
}
