//! Challenges that wait for the answer of an authenticator; each is good once, whether the answer was right or not.

use serde_json::Value;

use super::super::eviction::evict;
use crate::access::{unaudited, unowned};
use crate::iam::{
    MAX_PASSKEY_REGISTRATIONS, PASSKEY_CHALLENGE_LIFETIME, PasskeyChallenge, PasskeyChallengeQuery,
    TokenHash,
};
use crate::kernel::{Code, Context, Error, JsonText, Result, TOKEN_LENGTH, UserId, secret_token};
use crate::port::{PasskeyCeremony, PasskeyError, UnitOfWork};
use crate::use_case::shared::remove_first;

/// A ceremony that has begun.
#[derive(Clone, PartialEq)]
pub struct Begun {
    /// For the browser.
    pub options: Value,
    /// What the challenge is recognised by. Shown now and never again.
    pub token: String,
}

// The token stays out of logs.
impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begun")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Stores what the answer will be checked against; for a registration, whose it is.
pub(super) async fn store_challenge(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user_id: Option<UserId>,
    ceremony: PasskeyCeremony,
) -> Result<Begun> {
    if let Some(user) = &user_id {
        evict_registrations(uow, user).await?;
    }
    let now = uow.now().await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let challenge = PasskeyChallenge {
        token_hash: TokenHash::of(&token),
        user_id,
        state: ceremony.state,
        created_at: now,
        expires_at: now.plus(PASSKEY_CHALLENGE_LIFETIME),
    };
    unaudited::insert(uow, challenge).await?;
    Ok(Begun {
        options: ceremony.options,
        token,
    })
}

/// Keeps the registrations that a user has begun bounded.
async fn evict_registrations(uow: &mut dyn UnitOfWork, user: &UserId) -> Result<()> {
    let of_user = PasskeyChallengeQuery::OfUser(user.clone());
    let waiting = unowned::<PasskeyChallenge>(uow);
    let waiting = waiting
        .list(&of_user, 2 * MAX_PASSKEY_REGISTRATIONS)
        .await?;
    let now = uow.now().await?;
    evict(uow, &waiting, MAX_PASSKEY_REGISTRATIONS, |challenge| {
        now >= challenge.expires_at
    })
    .await
}

/// Consumes the challenge of a token, which is gone with that: one that was made for this user, or for anybody.
pub(super) async fn consume_challenge(
    uow: &mut dyn UnitOfWork,
    token: &str,
    user: Option<&UserId>,
) -> Result<JsonText> {
    let hash = TokenHash::of(token);
    let found = unowned::<PasskeyChallenge>(uow).find(&hash).await?;
    let now = uow.now().await?;
    let found = found.filter(|found| now < found.expires_at && found.user_id.as_ref() == user);
    let found =
        found.ok_or_else(|| Error::refused(Code::ChallengeNotFound, "Challenge not found"))?;
    unaudited::remove(uow, &found).await?;
    Ok(found.into_inner().state)
}

/// What failed on our side.
pub(super) fn internal(error: &PasskeyError) -> Error {
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text = format!("{text}: {cause}");
    }
    Error::Internal(text)
}

/// Removes at most `limit` of the challenges that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_passkey_challenges(
    uow: &mut dyn UnitOfWork,
    limit: u32,
) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<PasskeyChallenge>(uow, &PasskeyChallengeQuery::ExpiredAt(now), limit).await
}
