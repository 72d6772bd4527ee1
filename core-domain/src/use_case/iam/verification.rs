//! Creates and consumes mailed tokens, and composes the mails of IAM.

use crate::access::{unaudited, unowned_records};
use crate::iam::{TokenHash, User, Verification, VerificationPurpose, VerificationQuery};
use crate::kernel::{
    Cipher, Code, Context, Email, Error, Line, Result, Stored, TOKEN_LENGTH, VerificationId,
    is_plain_name, secret_token,
};
use crate::port::{Mail, UnitOfWork};
use crate::shared::MailRate;
use crate::use_case::shared::{
    LinkMail, MailPermit, MailSubject, check_mail_quotas, queue_decoy, queue_mail, remove_first,
};

/// The settings for mails with links: how links are built, and how mails are encrypted in the outbox.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    /// Builds the link for a token.
    pub link: &'a (dyn Fn(&str) -> String + Send + Sync),
    /// Encrypts the mail in the outbox.
    pub cipher: &'a Cipher,
}

impl std::fmt::Debug for Links<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Links(..)")
    }
}

/// The recipient of a mail with a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::iam) enum Recipient {
    /// The mail is sent to the address.
    Address,
    /// No mail is sent, because the address has no user whom it concerns.
    Nobody,
}

impl Recipient {
    /// Returns `Self::Address` if the address has the user whom the mail is for, otherwise `Self::Nobody`.
    pub(in crate::use_case::iam) const fn of<T>(user: Option<&T>) -> Self {
        match user {
            Some(_) => Self::Address,
            None => Self::Nobody,
        }
    }
}

/// Creates a token and queues its mail. If the address has reached the hourly limit of mails for this purpose, nothing
/// is stored. Returns whether the limit allowed the mail. Earlier tokens stay valid, so that other people cannot
/// invalidate them by requesting more.
///
/// For [`Recipient::Nobody`] the same work is done and the mail is dropped. Thus the response time does not reveal
/// whether the address has a user.
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
    if check_mail_quotas(uow, &[quota]).await? != MailPermit::Granted {
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
    let mail = &link_mail(purpose, email, &(links.link)(&token));
    match recipient {
        Recipient::Address => queue_mail(cx, uow, links.cipher, mail).await?,
        Recipient::Nobody => queue_decoy(cx, uow, links.cipher, mail).await?,
    }
    Ok(true)
}

/// Returns the record of a token; `None` if it has another purpose or has expired.
pub(in crate::use_case::iam) async fn find(
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    token: &str,
) -> Result<Option<Stored<Verification>>> {
    let with_token = VerificationQuery::WithToken(TokenHash::of(token));
    let found = unowned_records::<Verification>(uow)
        .first(&with_token)
        .await?;
    let now = uow.now().await?;
    Ok(found.filter(|found| found.purpose == purpose && now < found.expires_at))
}

/// Consumes a token. Of two concurrent requests, one fails.
///
/// # Errors
/// `INVALID_TOKEN` if the token is unknown, used, expired, or has another purpose.
pub(in crate::use_case::iam) async fn consume(
    uow: &mut dyn UnitOfWork,
    purpose: VerificationPurpose,
    token: &str,
) -> Result<Stored<Verification>> {
    let found = find(uow, purpose, token).await?.ok_or_else(invalid_token)?;
    unaudited::remove(uow, &found).await?;
    Ok(found)
}

/// Returns the error for a token that is unknown, used or expired.
pub(in crate::use_case::iam) fn invalid_token() -> Error {
    Error::refused(Code::InvalidToken, "Invalid token")
}

/// Removes at most `limit` expired tokens, in the order of their expiry. Returns their number; 0 means that none is
/// left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<Verification>(uow, &VerificationQuery::ExpiredAt(now), limit).await
}

/// Composes the mail with the link of a token.
fn link_mail(purpose: VerificationPurpose, to: &Email, link: &str) -> Mail {
    const IGNORE: &str = "If you did not request this, you can ignore this mail.";
    let letter = match purpose {
        VerificationPurpose::MagicLink => LinkMail {
            subject: "Your sign-in link",
            intro: "Open this link within 5 minutes to sign in. It works once.",
            button: "Sign in",
            note: IGNORE,
        },
        VerificationPurpose::PasswordReset => LinkMail {
            subject: "Set a new password",
            intro: "Open this link within an hour to set a new password. It works once.",
            button: "Set a new password",
            note: IGNORE,
        },
        VerificationPurpose::EmailVerification => LinkMail {
            subject: "Confirm your e-mail address",
            intro: "Open this link within an hour to confirm that this is your address.",
            button: "Confirm the address",
            note: "If you did not sign up, another person used your address. On the page of the link you can take the \
                   account over or delete it.",
        },
        VerificationPurpose::AlreadyRegistered => LinkMail {
            subject: "You already have an account",
            intro: "Someone tried to sign up with this address, which already has an account. If that was you, sign in. If you \
                  do not know the password, request a new one on the sign-in page.",
            button: "Sign in",
            note: "If that was not you, you can ignore this mail. Your account was not changed.",
        },
    };
    letter.to(to, Some(link))
}

/// The names in an invitation mail.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::iam) struct InvitationNames<'a> {
    /// The name of the organization.
    pub(in crate::use_case::iam) organization: &'a str,
    /// The name or address of the inviter; `None` if the user was deleted.
    pub(in crate::use_case::iam) inviter: Option<&'a str>,
}

/// Composes an invitation mail. Omits names that are not plain text; older records may contain such names.
pub(in crate::use_case::iam) fn invitation_mail(
    to: &Email,
    names: InvitationNames<'_>,
    link: &str,
) -> Mail {
    let is_plain = |name: &&str| is_plain_name(name);
    let organization = Some(names.organization).filter(is_plain);
    let organization = organization.unwrap_or("an organization");
    let inviter = names.inviter.filter(is_plain).unwrap_or("Someone");
    let subject = format!("Invitation to {organization}");
    let why = format!(
        "{inviter} invites you to join {organization}. The invitation is valid for 48 hours."
    );
    LinkMail {
        subject: &subject,
        intro: &why,
        button: "View the invitation",
        note: "If you did not expect this invitation, you can ignore this mail.",
    }
    .to(to, Some(link))
}

/// An account event that its owner is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::iam) enum Notice {
    /// Sign-ins require a second factor from now on.
    TwoFactorEnabled,
    /// The second factor was removed.
    TwoFactorDisabled,
    /// The secret of the authenticator app was displayed again.
    TwoFactorSecretShown,
    /// New recovery codes were created.
    RecoveryCodesRenewed,
    /// A recovery code was used. Contains the number of unused ones.
    RecoveryCodeUsed(usize),
    /// A passkey was added.
    PasskeyAdded,
    /// A passkey was removed.
    PasskeyRemoved,
    /// An operator removed the authenticator app and the passkeys.
    FactorsRemoved,
    /// The password was changed with the old password.
    PasswordChanged,
    /// The password was set by a mailed link.
    PasswordReset,
    /// The email address was verified.
    EmailVerified,
}

/// Composes a notice to the owner of an account. It links to the page on which the owner can see and end everything
/// that can act for them.
pub(in crate::use_case::iam) fn notice_mail(notice: Notice, to: &Email, link: &str) -> Mail {
    let left;
    let (subject, why) = match notice {
        Notice::TwoFactorEnabled => (
            "A second factor was enabled",
            "A second factor was enabled for your account. Signing in now requires a code of your authenticator in addition \
             to the password.",
        ),
        Notice::TwoFactorDisabled => (
            "Your second factor was disabled",
            "The second factor of your account was disabled. Signing in now requires only the password.",
        ),
        Notice::TwoFactorSecretShown => (
            "Your authenticator's secret was shown",
            "The secret of your authenticator was displayed again. Anyone who has seen it can set up another authenticator that \
             shows the same codes.",
        ),
        Notice::RecoveryCodesRenewed => (
            "Your recovery codes were renewed",
            "New recovery codes were created for your account. The old ones no longer work.",
        ),
        Notice::RecoveryCodeUsed(count) => {
            left = match count {
                0 => "A recovery code was used instead of your authenticator. It was the last one. Create new ones."
                    .to_owned(),
                1 => "A recovery code was used instead of your authenticator. One is left. Create new ones soon."
                    .to_owned(),
                count => format!(
                    "A recovery code was used instead of your authenticator. {count} are left."
                ),
            };
            ("A recovery code was used", left.as_str())
        }
        Notice::PasskeyAdded => (
            "A passkey was added",
            "A passkey was added to your account. It can sign in without the password. You can see it \
             and remove it on the page of your account.",
        ),
        Notice::PasskeyRemoved => (
            "A passkey was removed",
            "A passkey was removed from your account. It can no longer sign in.",
        ),
        Notice::FactorsRemoved => (
            "Your second factors were removed",
            "An operator removed the authenticator and the passkeys of your account and ended all your sessions. Signing in now \
             requires only the password.",
        ),
        Notice::PasswordChanged => (
            "Your password was changed",
            "The password of your account was changed. Your other sessions have ended.",
        ),
        Notice::PasswordReset => (
            "Your password was changed",
            "A new password was set for your account with a link that was sent to this address. All your sessions have ended.",
        ),
        Notice::EmailVerified => (
            "Your e-mail address is confirmed",
            "This address is now confirmed for your account.",
        ),
    };
    LinkMail {
        subject,
        intro: why,
        button: "Check your account",
        note: "If that was you, you need not do anything. If it was not, open the link above. The page shows everything \
               that can act for you. End everything that you do not recognise, and set a new password. If you cannot \
               sign in, request a new password there.",
    }
    .to(to, Some(link))
}

/// The settings for notices to account owners.
#[derive(Clone, Copy)]
pub struct Notices<'a> {
    /// The URL of the page on which owners see and end everything that can act for them.
    pub page: &'a str,
    /// The cipher of the installation, which encrypts the mail in the outbox.
    pub cipher: &'a Cipher,
}

impl std::fmt::Debug for Notices<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notices(..)")
    }
}

impl Notices<'_> {
    /// Queues a notice to the owner of the account.
    pub(in crate::use_case::iam) async fn send(
        self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        owner: &User,
        notice: Notice,
    ) -> Result<()> {
        let mail = notice_mail(notice, &owner.email, self.page);
        queue_mail(cx, uow, self.cipher, &mail).await
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn names_are_escaped_in_html_mails() {
        let to = Email::parse("ada@example.org").unwrap();
        let names = InvitationNames {
            organization: "<b>Acme</b>",
            inviter: Some("\"Eve\" & co"),
        };
        let mail = invitation_mail(&to, names, "https://x.test/?a=1&b=2");
        assert!(
            mail.html
                .contains("&quot;Eve&quot; &amp; co invites you to join &lt;b&gt;Acme")
        );
        assert!(mail.html.contains("href=\"https://x.test/?a=1&amp;b=2\""));
        assert!(mail.text.contains("https://x.test/?a=1&b=2\n"));
        assert_eq!(mail.subject, "Invitation to <b>Acme</b>");
    }

    #[test]
    fn names_that_are_not_plain_text_are_omitted_from_mails() {
        let to = Email::parse("ada@example.org").unwrap();
        let names = InvitationNames {
            organization: "Win at evil.example/now",
            inviter: Some("https://evil.example"),
        };
        let mail = invitation_mail(&to, names, "https://x.test/");
        let sentence = "Someone invites you to join an organization.";
        assert!(mail.text.starts_with(sentence), "{}", mail.text);
        assert_eq!(mail.subject, "Invitation to an organization");
        assert!(!format!("{mail:?}").contains("evil"));
        let names = InvitationNames {
            organization: "Booking.com",
            inviter: Some("www.evil.example/x@example.org"),
        };
        let mail = invitation_mail(&to, names, "https://x.test/");
        assert!(
            mail.text
                .starts_with("Someone invites you to join Booking.com.")
        );
    }
}
