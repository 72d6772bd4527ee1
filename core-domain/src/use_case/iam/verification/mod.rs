//! Tokens that are sent by mail: made, and used up.

pub(in crate::use_case::iam) mod mail;
mod notices;

pub use notices::Notices;

use crate::access::{unaudited, unowned};
use crate::iam::{TokenHash, Verification, VerificationPurpose, VerificationQuery};
use crate::kernel::{
    Cipher, Code, Context, Email, Error, Line, Result, Stored, TOKEN_LENGTH, VerificationId,
    secret_token,
};
use crate::port::UnitOfWork;
use crate::shared::MailRate;
use crate::use_case::shared::{
    MailPermit, MailSubject, queue_decoy, queue_mail, remove_first, take_mail,
};

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

/// Who gets a mail with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::iam) enum Recipient {
    /// The address.
    Address,
    /// Nobody: there is nothing to send to the address.
    Nobody,
}

impl Recipient {
    /// The address, if it has the user whom the mail is for.
    pub(in crate::use_case::iam) const fn of<T>(user: Option<&T>) -> Self {
        match user {
            Some(_) => Self::Address,
            None => Self::Nobody,
        }
    }
}

/// Creates a token and queues its mail, unless the address already got as many mails of the purpose as the limit allows:
/// then nothing is stored. Returns whether the limit allowed the mail. Tokens that were sent before stay valid, so that
/// nobody can take them from their owner by asking for more.
///
/// For [`Recipient::Nobody`] the same work is done and the mail is dropped, so that nobody can tell addresses apart by it.
pub(in crate::use_case::iam) async fn send(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    email: &Email,
    name: Option<Line<0, 255>>,
    links: Links<'_>,
    recipient: Recipient,
) -> Result<bool> {
    let kind = purpose.as_str();
    let rates = [MailRate::per_hour(cx.limits.mail.links_per_hour)];
    let quota = (MailSubject::Address { kind, email }, &rates[..]);
    if take_mail(uow, &[quota]).await? != MailPermit::Granted {
        return Ok(false);
    }
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
    let mail = &mail::with_link(purpose, email, &(links.link)(&token));
    match recipient {
        Recipient::Address => queue_mail(cx, uow, links.cipher, mail).await?,
        Recipient::Nobody => queue_decoy(cx, uow, links.cipher, mail).await?,
    }
    Ok(true)
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

/// Removes at most `limit` of the tokens of links that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<Verification>(uow, &VerificationQuery::ExpiredAt(now), limit).await
}
