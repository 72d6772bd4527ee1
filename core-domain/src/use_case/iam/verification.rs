//! Tokens that are sent by mail: made, and used up.

use crate::access::{unaudited, unowned};
use crate::iam::{TokenHash, User, Verification, VerificationPurpose, VerificationQuery};
use crate::kernel::{
    Cipher, Code, Context, Email, Error, Line, Result, Stored, TOKEN_LENGTH, VerificationId,
    is_plain_name, secret_token,
};
use crate::port::{Mail, UnitOfWork};
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
    let mail = &with_link(purpose, email, &(links.link)(&token));
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

/// A mail with one link in it.
struct Letter<'a> {
    subject: &'a str,
    /// Before the link.
    why: &'a str,
    /// On the link.
    button: &'a str,
    /// After the link.
    note: &'a str,
}

/// The mail with the link of a token.
fn with_link(purpose: VerificationPurpose, to: &Email, link: &str) -> Mail {
    const IGNORE: &str = "If you did not ask for this, nothing happens when you ignore this mail.";
    let letter = match purpose {
        VerificationPurpose::MagicLink => Letter {
            subject: "Your sign-in link",
            why: "Open this link within 5 minutes to sign in. It works once.",
            button: "Sign in",
            note: IGNORE,
        },
        VerificationPurpose::PasswordReset => Letter {
            subject: "Set a new password",
            why: "Open this link within an hour to set a new password. It works once.",
            button: "Set a new password",
            note: IGNORE,
        },
        VerificationPurpose::EmailVerification => Letter {
            subject: "Confirm your e-mail address",
            why: "Open this link within an hour to confirm that this is your address.",
            button: "Confirm the address",
            note: "If you did not sign up, somebody else did with your address. The page behind the link lets you take the \
                   account over or delete it.",
        },
        VerificationPurpose::AlreadyRegistered => Letter {
            subject: "You already have an account",
            why: "Somebody signed up with this address, which has an account already. If that was you, sign in with it; if \
                  you do not know its password, ask for a new one there.",
            button: "Sign in",
            note: "If it was not you, nothing has happened: ignore this mail.",
        },
    };
    letter.to(to, link)
}

/// The names in the mail to somebody who is invited.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::iam) struct InvitationNames<'a> {
    /// The name of the organization.
    pub(in crate::use_case::iam) organization: &'a str,
    /// The name or address of the inviter; `None` if the user was deleted.
    pub(in crate::use_case::iam) inviter: Option<&'a str>,
}

/// The mail to somebody who is invited to an organization. Names that are not plain are left out: they may have been stored
/// before there was the rule.
pub(in crate::use_case::iam) fn invitation(
    to: &Email,
    names: InvitationNames<'_>,
    link: &str,
) -> Mail {
    let is_plain = |name: &&str| is_plain_name(name);
    let organization = Some(names.organization).filter(is_plain);
    let organization = organization.unwrap_or("an organization");
    let inviter = names.inviter.filter(is_plain).unwrap_or("Somebody");
    let subject = format!("Invitation to {organization}");
    let why = format!(
        "{inviter} invites you to join {organization}. The invitation is good for 48 hours."
    );
    Letter {
        subject: &subject,
        why: &why,
        button: "See the invitation",
        note: "If you do not know why you were invited, you may ignore this mail.",
    }
    .to(to, link)
}

/// What has happened to an account, for its owner to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::use_case::iam) enum Notice {
    /// A second factor is asked for from now on.
    TwoFactorEnabled,
    /// The second factor was removed.
    TwoFactorDisabled,
    /// The secret of the authenticator was shown once more.
    TwoFactorSecretShown,
    /// New recovery codes were created.
    RecoveryCodesRenewed,
    /// A recovery code was used; so many are left.
    RecoveryCodeUsed(usize),
    /// A passkey was added.
    PasskeyAdded,
    /// A passkey was removed.
    PasskeyRemoved,
    /// An operator removed the authenticator and the passkeys.
    FactorsRemoved,
    /// The password was changed by whoever knew the old one.
    PasswordChanged,
    /// The password was set by a link.
    PasswordReset,
    /// The address was confirmed.
    EmailVerified,
}

/// The mail to the owner of an account. It leads to the page that shows what can act for the owner, and ends it.
pub(in crate::use_case::iam) fn notice_mail(notice: Notice, to: &Email, link: &str) -> Mail {
    let left;
    let (subject, why) = match notice {
        Notice::TwoFactorEnabled => (
            "A second factor was enabled",
            "From now on the password alone does not sign in to your account: it asks for a code of your authenticator as well.",
        ),
        Notice::TwoFactorDisabled => (
            "Your second factor was disabled",
            "The second factor of your account was disabled. From now on the password alone signs in.",
        ),
        Notice::TwoFactorSecretShown => (
            "Your authenticator's secret was shown",
            "The secret of your authenticator was shown once more. Whoever has seen it can set up another authenticator that \
             shows the same codes.",
        ),
        Notice::RecoveryCodesRenewed => (
            "Your recovery codes were renewed",
            "New recovery codes were created for your account. The old ones do not work any more.",
        ),
        Notice::RecoveryCodeUsed(count) => {
            left = match count {
                0 => "A recovery code was used in the place of your authenticator. It was the last one: make new ones."
                    .to_owned(),
                1 => "A recovery code was used in the place of your authenticator. One is left: make new ones soon."
                    .to_owned(),
                count => format!(
                    "A recovery code was used in the place of your authenticator. {count} are left."
                ),
            };
            ("A recovery code was used", left.as_str())
        }
        Notice::PasskeyAdded => (
            "A passkey was added",
            "A passkey was added to your account. From now on it signs in without the password. Your account's page shows it, \
             and removes it.",
        ),
        Notice::PasskeyRemoved => (
            "A passkey was removed",
            "A passkey was removed from your account. It does not sign in any more.",
        ),
        Notice::FactorsRemoved => (
            "Your second factors were removed",
            "An operator removed the authenticator and the passkeys of your account and ended all your sessions. From now on the \
             password alone signs in.",
        ),
        Notice::PasswordChanged => (
            "Your password was changed",
            "The password of your account was changed. Your other sessions have ended.",
        ),
        Notice::PasswordReset => (
            "Your password was changed",
            "A new password was set for your account, by a link that was sent to this address. All your sessions have ended.",
        ),
        Notice::EmailVerified => (
            "Your e-mail address is confirmed",
            "This address was confirmed for your account.",
        ),
    };
    Letter {
        subject,
        why,
        button: "Check your account",
        note: "If that was you, there is nothing to do. If it was not, open the link above: it shows everything that can act for \
               you. End what is not yours, and set a new password. If you cannot sign in, ask for a new password there.",
    }
    .to(to, link)
}

impl Letter<'_> {
    fn to(&self, to: &Email, link: &str) -> Mail {
        let Self {
            subject,
            why,
            button,
            note,
        } = *self;
        let (html_why, html_button) = (escaped(why), escaped(button));
        let (html_note, html_link) = (escaped(note), escaped(link));
        Mail {
            to: to.clone(),
            subject: subject.to_owned(),
            text: format!("{why}\n\n{link}\n\n{note}\n"),
            html: format!(
                "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title></head>\
                 <body style=\"font-family:sans-serif;line-height:1.5\"><p>{html_why}</p>\
                 <p><a href=\"{html_link}\">{html_button}</a></p><p>{html_link}</p><p>{html_note}</p></body></html>",
                escaped(subject),
            ),
        }
    }
}

/// A text as the content of an element or attribute of HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// How owners are told.
#[derive(Clone, Copy)]
pub struct Notices<'a> {
    /// The address of the page that shows owners what can act for them, and ends it.
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
    /// Tells the owner.
    pub(in crate::use_case::iam) async fn tell(
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
    fn what_people_write_is_text_in_the_html_of_a_mail() {
        let to = Email::parse("ada@example.org").unwrap();
        let names = InvitationNames {
            organization: "<b>Acme</b>",
            inviter: Some("\"Eve\" & co"),
        };
        let mail = invitation(&to, names, "https://x.test/?a=1&b=2");
        assert!(
            mail.html
                .contains("&quot;Eve&quot; &amp; co invites you to join &lt;b&gt;Acme")
        );
        assert!(mail.html.contains("href=\"https://x.test/?a=1&amp;b=2\""));
        assert!(mail.text.contains("https://x.test/?a=1&b=2\n"));
        assert_eq!(mail.subject, "Invitation to <b>Acme</b>");
    }

    #[test]
    fn names_that_are_not_plain_are_left_out_of_mails() {
        let to = Email::parse("ada@example.org").unwrap();
        let names = InvitationNames {
            organization: "Win at evil.example/now",
            inviter: Some("https://evil.example"),
        };
        let mail = invitation(&to, names, "https://x.test/");
        let sentence = "Somebody invites you to join an organization.";
        assert!(mail.text.starts_with(sentence), "{}", mail.text);
        assert_eq!(mail.subject, "Invitation to an organization");
        assert!(!format!("{mail:?}").contains("evil"));
        let names = InvitationNames {
            organization: "Booking.com",
            inviter: Some("www.evil.example/x@example.org"),
        };
        let mail = invitation(&to, names, "https://x.test/");
        assert!(
            mail.text
                .starts_with("Somebody invites you to join Booking.com.")
        );
    }
}
