//! Sign-in with a link that is sent by mail (magic link).

use serde_json::json;

use super::account::take_over;
use super::sign_up::{NewUser, insert_user};
use crate::access::{AuditEvent, PublicScope, audited, unowned_records};
use crate::iam::{Account, AccountQuery, User, UserQuery, VerificationPurpose};
use crate::kernel::{Context, Email, PersonName, Result, Stored};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, FirstFactor, SignInOutcome};
use crate::use_case::iam::verification::{self, Links, Recipient, invalid_token};

const PURPOSE: VerificationPurpose = VerificationPurpose::MagicLink;

/// The result of a sign-in with a magic link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSignIn {
    /// The new session, or the challenge for a second factor.
    pub outcome: SignInOutcome,
    /// Whether the user was created by this sign-in.
    pub is_new: bool,
}

/// Mails a magic link to an address. Known and unknown addresses are treated alike, so that the response reveals
/// nothing.
///
/// # Errors
/// Only those of the store.
pub async fn send_magic_link(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    name: Option<PersonName>,
    links: Links<'_>,
) -> Result<()> {
    let name = name.map(PersonName::into);
    verification::send(cx, uow, PURPOSE, email, name, links, Recipient::Address).await?;
    Ok(())
}

/// Returns the address that the token was mailed to. Does not consume the token.
///
/// # Errors
/// `INVALID_TOKEN` if the token is unknown, used or expired.
pub async fn check_magic_link(
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Email> {
    let found = verification::find(uow, PURPOSE, token).await?;
    let found = found.ok_or_else(invalid_token)?;
    Ok(found.email.clone())
}

/// Signs in the holder of a token, once. Creates the user if the address is unknown. The token proves that the holder
/// receives mail at the address. If the address was not verified before, everything that gave access is removed,
/// because another person may have set it up. Otherwise the link is one factor, and users with a second factor are
/// challenged for it.
///
/// # Errors
/// - `INVALID_TOKEN` if the token is unknown, used or expired.
/// - `BANNED_USER` if the user is banned.
pub async fn verify_magic_link(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<LinkSignIn> {
    let used = verification::consume(uow, PURPOSE, token).await?;
    let with_email = UserQuery::WithEmail(used.email.clone());
    let known = unowned_records::<User>(uow).first(&with_email).await?;
    let is_new = known.is_none();
    let user = match known {
        Some(user) => confirm_or_take_over(cx, scope, uow, user).await?,
        None => {
            let new = NewUser {
                name: used.name.clone().unwrap_or_default(),
                email: used.email.clone(),
                email_verified: true,
                image: None,
            };
            insert_user(cx, uow, new).await?
        }
    };
    let begun = session::begin_or_challenge(cx, uow, user, FirstFactor::Link, true);
    let (outcome, _) = begun.await?;
    let SignInOutcome::SignedIn(signed_in) = &outcome else {
        return Ok(LinkSignIn { outcome, is_new });
    };
    let event = AuditEvent {
        action: if is_new {
            "user.signed_up"
        } else {
            "user.signed_in"
        },
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({
            "email": used.email,
            "method": PURPOSE,
            "sessionId": signed_in.session.id,
        })),
        ..AuditEvent::default()
    };
    audited::record_event(&session::as_user(cx, &signed_in.user), uow, event).await?;
    Ok(LinkSignIn { outcome, is_new })
}

/// Returns the user with a verified address. If it was not verified before, removes the password and everything else
/// that gave access.
async fn confirm_or_take_over(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
) -> Result<Stored<User>> {
    if user.email_verified {
        return Ok(user);
    }
    let cx = session::as_user(cx, &user).without_conditions();
    let password = AccountQuery::PasswordOf(user.id.clone());
    if let Some(account) = unowned_records::<Account>(uow).first(&password).await? {
        audited::remove(&cx, scope, uow, &account, "account.unverified_removed").await?;
    }
    take_over(&cx, scope, uow, &user).await
}
