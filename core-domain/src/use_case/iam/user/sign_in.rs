//! Sign-in with an email address and a password. The caller verifies the password between [`password_credential`] and
//! [`sign_in`], outside of a unit of work, because this is slow.

use std::time::Duration;

use serde_json::json;

use crate::access::{AuditEvent, PublicScope, audited, unowned_records};
use crate::iam::{Account, AccountQuery, PasswordHash, User, UserQuery, VerificationPurpose};
use crate::kernel::{AccountId, Code, Context, Email, Error, Result, UserId};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, FirstFactor, SignInOutcome};
use crate::use_case::iam::verification::{self, Links, Recipient};

/// The password account of an email address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordCredential {
    /// The user who owns the account.
    pub user_id: UserId,
    /// The password account.
    pub account_id: AccountId,
    /// The hash to verify the password against.
    pub hash: PasswordHash,
}

impl PasswordCredential {
    /// Returns the credential of an account; `None` if the account has no password.
    pub(super) fn of(account: &Account) -> Option<Self> {
        Some(Self {
            user_id: account.user_id.clone(),
            account_id: account.id.clone(),
            hash: account.password_hash.clone()?,
        })
    }
}

/// A sign-in whose password was verified.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// The credential that the password was verified against.
    pub checked: PasswordCredential,
    /// Whether the browser keeps the session cookie after it is closed.
    pub remembered: bool,
    /// Whether a verified address is required.
    pub require_verified_email: bool,
    /// The token of the device, which may be trusted; `None` if the request has none.
    pub device: Option<String>,
}

/// The result of a sign-in with a correct password.
#[derive(Clone, PartialEq)]
pub struct PasswordSignIn {
    /// The new session, or the challenge for a second factor.
    pub outcome: SignInOutcome,
    /// The next token of the device, if its trust replaced the second factor. It is returned only once.
    pub device: Option<String>,
}

// The `Debug` output hides the token, so that it does not appear in logs.
impl std::fmt::Debug for PasswordSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PasswordSignIn")
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

/// Returns the credential to verify a password against; `None` if the address has no user or the user has no password.
///
/// # Errors
/// Only those of the store.
pub async fn password_credential(
    uow: &mut dyn UnitOfWork,
    email: &Email,
) -> Result<Option<PasswordCredential>> {
    let with_email = UserQuery::WithEmail(email.clone());
    let Some(user) = unowned_records::<User>(uow).first(&with_email).await? else {
        return Ok(None);
    };
    let password_of = AccountQuery::PasswordOf(user.id.clone());
    let account = unowned_records::<Account>(uow).first(&password_of).await?;
    Ok(account.and_then(|account| PasswordCredential::of(&account)))
}

/// Returns the error of a failed sign-in. It is the same for an unknown address and a wrong password.
pub(super) fn invalid_credentials_error() -> Error {
    Error::refused(Code::InvalidEmailOrPassword, "Invalid email or password")
}

/// Creates a session, or a challenge if a second factor is required. The password must not have changed since it was
/// verified.
///
/// # Errors
/// - `INVALID_EMAIL_OR_PASSWORD` if the password was changed since it was verified.
/// - `EMAIL_NOT_VERIFIED` if a verified address is required and missing. Call [`refuse_unconfirmed`] then.
/// - `BANNED_USER` if the user is banned.
pub async fn sign_in(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    input: &SignIn,
) -> Result<PasswordSignIn> {
    let checked = &input.checked;
    let account = unowned_records::<Account>(uow)
        .find(&checked.account_id)
        .await?;
    let account = account.filter(|a| a.password_hash.as_ref() == Some(&checked.hash));
    let user = unowned_records::<User>(uow).find(&checked.user_id).await?;
    let (Some(account), Some(user)) = (account, user) else {
        return Err(invalid_credentials_error());
    };
    if input.require_verified_email && !user.email_verified {
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
    audited::record_event(&session::as_user(cx, &signed_in.user), uow, event).await?;
    Ok(PasswordSignIn { outcome, device })
}

fn not_verified() -> Error {
    Error::refused(Code::EmailNotVerified, "Email not verified")
}

/// Checks that the address of a user is verified.
///
/// # Errors
/// `EMAIL_NOT_VERIFIED` if it is not.
pub(in crate::use_case::iam) fn ensure_confirmed(user: &User) -> Result<()> {
    if user.email_verified {
        Ok(())
    } else {
        Err(not_verified())
    }
}

/// Records a sign-in that was refused because the address is not verified, mails a verification link, and returns the
/// error for the response.
///
/// # Errors
/// Only those of the store.
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
    audited::record_event(cx, uow, event).await?;
    Ok(not_verified())
}

/// Records a failed sign-in, and returns the error for the response.
///
/// # Errors
/// Only those of the store.
pub async fn record_failed_sign_in(
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
    audited::record_event(cx, uow, event).await?;
    Ok(invalid_credentials_error())
}

/// The reason why no password is accepted for some time: too many were wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lockout {
    /// The account is locked, because of failed attempts by any client.
    OfAccount {
        /// Number of failed attempts.
        failures: u32,
        /// Time until the next attempt is allowed.
        retry_after: Duration,
    },
    /// The client is locked, for all accounts.
    OfClient {
        /// The name of the limit that the client has reached.
        limit: String,
        /// Maximum time until the next attempt is allowed.
        left: Duration,
    },
}

/// Records that a password was not checked because of a lockout. An unknown address is recorded as `unknown` and
/// otherwise treated like a known one.
///
/// # Errors
/// Only those of the store.
pub async fn record_lockout(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    lockout: &Lockout,
) -> Result<()> {
    let seconds = |left: &Duration| left.as_secs().max(1);
    let unknown = || "unknown".to_owned();
    let event = match lockout {
        Lockout::OfAccount {
            failures,
            retry_after: left,
        } => {
            let with_email = UserQuery::WithEmail(email.clone());
            let user = unowned_records::<User>(uow).first(&with_email).await?;
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
    audited::record_event(cx, uow, event).await
}
