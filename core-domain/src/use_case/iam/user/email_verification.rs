//! Proving that one reads mail at one's address.

use serde_json::json;

use crate::access::{AuditEvent, PublicScope, audited, unowned};
use crate::iam::{User, UserQuery, VerificationPurpose};
use crate::kernel::{Context, Email, Result, Stored};
use crate::port::UnitOfWork;
use crate::use_case::iam::session::{self, FirstFactor, SignInOutcome};
use crate::use_case::iam::verification::mail::Notice;
use crate::use_case::iam::verification::{self, Links, Notices, invalid_token};

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

/// An address was confirmed.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedEmail {
    /// Whose it is.
    pub user: Stored<User>,
    /// What the sign-in led to, where one was wanted.
    pub signed_in: Option<SignInOutcome>,
}

/// Takes the address of the token's user as theirs, and signs them in if wanted, unless they are or may not be. The token
/// goes.
///
/// # Errors
/// `INVALID_TOKEN`.
pub async fn verify_email(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    token: &str,
    sign_in: bool,
    notices: Notices<'_>,
) -> Result<VerifiedEmail> {
    let used = verification::consume(uow, PURPOSE, token).await?;
    let with_email = UserQuery::WithEmail(used.email.clone());
    let user = unowned::<User>(uow).first(&with_email).await?;
    let user = user.ok_or_else(invalid_token)?;
    let mut next = user.edit();
    next.email_verified = true;
    let as_user = session::as_user(cx, &user).consequence();
    let is_new = !user.email_verified;
    let user = audited::replace(&as_user, scope, uow, &user, next, "user.email_verified").await?;
    if is_new {
        notices
            .tell(&as_user, uow, &user, Notice::EmailVerified)
            .await?;
    }
    let known = cx.caller.user_id() == Some(&user.id);
    if !sign_in || !is_new || known || user.banned_at.is_some() {
        return Ok(VerifiedEmail {
            user,
            signed_in: None,
        });
    }
    let begun = session::begin_or_challenge(cx, uow, user.clone(), FirstFactor::Link, true);
    let (outcome, _) = begun.await?;
    if let SignInOutcome::SignedIn(signed_in) = &outcome {
        let event = AuditEvent {
            action: "user.signed_in",
            entity_id: user.id.to_string(),
            details: Some(json!({ "method": PURPOSE, "sessionId": signed_in.session.id })),
            ..AuditEvent::default()
        };
        audited::event(&as_user, uow, event).await?;
    }
    Ok(VerifiedEmail {
        user,
        signed_in: Some(outcome),
    })
}
