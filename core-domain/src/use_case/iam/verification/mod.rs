//! Tokens that are sent by mail: made, and used up.

pub(in crate::use_case::iam) mod mail;
mod notices;

pub use notices::Notices;

use super::eviction::evict;
use crate::access::{unaudited, unowned};
use crate::iam::{
    MAX_VERIFICATIONS, TokenHash, Verification, VerificationPurpose, VerificationQuery,
};
use crate::kernel::{
    Cipher, Code, Context, Email, Error, Line, Result, Stored, TOKEN_LENGTH, VerificationId,
    secret_token,
};
use crate::port::UnitOfWork;
use crate::use_case::shared::queue_mail;

/// What a link is made of, and how its mail is kept until it is sent.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    /// Makes the link of a token.
    pub link: &'a (dyn Fn(&str) -> String + Send + Sync),
    /// Encrypts the mail in the outbox.
    pub cipher: &'a Cipher,
}

impl std::fmt::Debug for Links<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Links(..)")
    }
}

/// Makes a token and queues its mail. Without `links` nobody is sent the token, which nobody can use then: for an address
/// that must not be told from others by the work that is done for it.
pub(in crate::use_case::iam) async fn send(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    email: &Email,
    name: Option<Line<0, 255>>,
    links: Option<Links<'_>>,
) -> Result<()> {
    evict_verifications(uow, purpose, email).await?;
    let now = uow.now().await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let verification = Verification {
        id: VerificationId::generate(now, cx.entropy.as_ref()),
        purpose,
        token_hash: TokenHash::of(&token),
        email: email.clone(),
        name,
        created_at: now,
        expires_at: now.plus(purpose.lifetime()),
    };
    unaudited::insert(uow, verification).await?;
    if let Some(links) = links {
        let mail = mail::with_link(purpose, email, &(links.link)(&token));
        queue_mail(cx, uow, links.cipher, &mail).await?;
    }
    Ok(())
}

/// As [`send`], of itself and unasked; tells whether it did: an address that has as many links as it may gets no more.
pub(in crate::use_case::iam) async fn send_unasked(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    email: &Email,
    links: Links<'_>,
) -> Result<bool> {
    let of = VerificationQuery::Of(purpose, email.clone());
    let sent = unowned::<Verification>(uow);
    let sent = sent.list(&of, 2 * MAX_VERIFICATIONS).await?;
    let now = uow.now().await?;
    let good = sent.iter().filter(|sent| now < sent.expires_at).count();
    if u32::try_from(good).is_ok_and(|good| good < MAX_VERIFICATIONS) {
        send(cx, uow, purpose, email, None, Some(links)).await?;
        return Ok(true);
    }
    Ok(false)
}

/// Keeps the tokens of an address bounded.
async fn evict_verifications(
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    email: &Email,
) -> Result<()> {
    let of = VerificationQuery::Of(purpose, email.clone());
    let all = unowned::<Verification>(uow)
        .list(&of, 2 * MAX_VERIFICATIONS)
        .await?;
    let now = uow.now().await?;
    evict(uow, &all, MAX_VERIFICATIONS, |verification| {
        now >= verification.expires_at
    })
    .await
}

/// The verification of a token, if it is good for the purpose now.
pub(in crate::use_case::iam) async fn find(
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    token: &str,
) -> Result<Option<Stored<Verification>>> {
    let with_token = VerificationQuery::WithToken(TokenHash::of(token));
    let found = unowned::<Verification>(uow).first(&with_token).await?;
    let now = uow.now().await?;
    Ok(found.filter(|found| found.purpose == purpose && now < found.expires_at))
}

/// Uses a token up; of two at once one finds it used.
///
/// # Errors
/// `INVALID_TOKEN`.
pub(in crate::use_case::iam) async fn consume(
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    token: &str,
) -> Result<Stored<Verification>> {
    let found = find(uow, purpose, token).await?.ok_or_else(invalid_token)?;
    unaudited::remove(uow, &found).await?;
    Ok(found)
}

/// The refusal of a token that is unknown, used or too old.
pub(in crate::use_case::iam) fn invalid_token() -> Error {
    Error::refused(Code::InvalidToken, "Invalid token")
}

/// Removes the tokens that have expired.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let expired = VerificationQuery::ExpiredAt(uow.now().await?);
    unowned::<Verification>(uow).remove_all(&expired).await
}
