//! Sign-ins that wait for their second factor. There is no session before it was shown.

use serde_json::json;

use super::begin::{SignedIn, as_user, begin, ensure_not_banned};
use crate::access::{AuditEvent, audited, unaudited, unowned};
use crate::iam::{
    CHALLENGE_LIFETIME, MAX_CHALLENGES, TokenHash, TwoFactor, TwoFactorChallenge,
    TwoFactorChallengeQuery, User,
};
use crate::kernel::{Code, Context, Error, Result, Stored, secret_token};
use crate::port::UnitOfWork;

/// Letters of a token: 43 of 62 hold 256 bits.
const TOKEN_LENGTH: usize = 43;

/// A sign-in that waits for its second factor.
#[derive(Clone, PartialEq)]
pub struct Challenged {
    /// Who signs in.
    pub user: Stored<User>,
    /// What the sign-in is recognised by. Shown now and never again.
    pub token: String,
}

// The token stays out of logs.
impl std::fmt::Debug for Challenged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Challenged")
            .field("user", &self.user.id)
            .finish_non_exhaustive()
    }
}

/// What a first factor that was right led to.
#[derive(Clone, Debug, PartialEq)]
pub enum SignInOutcome {
    /// Nothing else is asked for.
    SignedIn(SignedIn),
    /// The second factor is asked for; there is no session yet.
    SecondFactorRequired(Challenged),
}

/// Begins a session, or asks for the second factor of somebody who has one.
pub(in crate::use_case::iam) async fn begin_or_challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: Stored<User>,
    remembered: bool,
) -> Result<SignInOutcome> {
    ensure_not_banned(&user)?;
    let two_factor = unowned::<TwoFactor>(uow).find(&user.id).await?;
    if !two_factor.is_some_and(|two_factor| two_factor.is_confirmed()) {
        let signed_in = begin(cx, uow, user, remembered).await?;
        return Ok(SignInOutcome::SignedIn(signed_in));
    }
    make_room(uow, &user).await?;
    let now = uow.now().await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let challenge = TwoFactorChallenge {
        token_hash: TokenHash::of(&token),
        user_id: user.id.clone(),
        remembered,
        created_at: now,
        expires_at: now.plus(CHALLENGE_LIFETIME),
    };
    unaudited::insert(uow, challenge).await?;
    let event = AuditEvent {
        action: "two_factor.required",
        entity_id: user.id.to_string(),
        details: Some(json!({ "remembered": remembered })),
        ..AuditEvent::default()
    };
    // Who shows one factor is not known to be the user yet.
    audited::event(cx, uow, event).await?;
    Ok(SignInOutcome::SecondFactorRequired(Challenged {
        user,
        token,
    }))
}

/// Keeps the sign-ins of a user that wait bounded.
async fn make_room(uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    let of_user = TwoFactorChallengeQuery::OfUser(user.id.clone());
    let waiting = unowned::<TwoFactorChallenge>(uow);
    let waiting = waiting.list(&of_user, 2 * MAX_CHALLENGES).await?;
    let now = uow.now().await?;
    let kept = usize::try_from(MAX_CHALLENGES).unwrap_or(usize::MAX) - 1;
    let too_many = waiting.len().saturating_sub(kept);
    for (position, challenge) in waiting.iter().enumerate() {
        if position < too_many || now >= challenge.expires_at {
            unaudited::remove(uow, challenge).await?;
        }
    }
    Ok(())
}

/// The sign-in of a token, if it waits.
pub(in crate::use_case::iam) async fn find_challenge(
    uow: &mut dyn UnitOfWork,
    token: &str,
) -> Result<Stored<TwoFactorChallenge>> {
    let hash = TokenHash::of(token);
    let found = unowned::<TwoFactorChallenge>(uow).find(&hash).await?;
    let now = uow.now().await?;
    let found = found.filter(|found| now < found.expires_at);
    found.ok_or_else(|| Error::refused(Code::InvalidTwoFactorCookie, "Invalid two factor cookie"))
}

/// Begins the session of a sign-in whose second factor was shown; the sign-in waits no more.
pub(in crate::use_case::iam) async fn complete_challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    challenge: &Stored<TwoFactorChallenge>,
    user: Stored<User>,
    method: &'static str,
) -> Result<SignedIn> {
    unaudited::remove(uow, challenge).await?;
    let signed_in = begin(cx, uow, user, challenge.remembered).await?;
    let event = AuditEvent {
        action: "user.signed_in",
        entity_id: signed_in.user.id.to_string(),
        details: Some(json!({ "method": method, "sessionId": signed_in.session.id })),
        ..AuditEvent::default()
    };
    audited::event(&as_user(cx, &signed_in.user), uow, event).await?;
    Ok(signed_in)
}

/// Removes the sign-ins that waited too long; tells how many.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_challenges(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let expired = TwoFactorChallengeQuery::ExpiredAt(uow.now().await?);
    unowned::<TwoFactorChallenge>(uow)
        .remove_all(&expired)
        .await
}
