//! Mails that leave the installation.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Cause;
use crate::kernel::{Email, OutboxId};

/// A mail to one person, with the same text in two formats.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The address of the recipient.
    pub to: Email,
    /// The subject, on one line.
    pub subject: String,
    /// The text in plain form.
    pub text: String,
    /// The text as HTML.
    pub html: String,
}

// Links in a mail are secrets, so the text stays out of logs.
impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mail")
            .field("to", &self.to)
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// The reason why a mail was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MailError {
    /// A later attempt can succeed: the server is unreachable, busy, or defers the mail.
    #[error("the mail was not accepted yet")]
    Transient(#[source] Cause),
    /// No attempt can succeed: the server rejects the mail or its recipient.
    #[error("the mail was rejected")]
    Permanent(#[source] Cause),
}

/// Sends mails through a mail server.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Mailer: Send + Sync + std::fmt::Debug {
    /// Sends a mail. After a crash the same mail can be passed again, with the same id.
    ///
    /// # Errors
    /// [`MailError`] if the server does not accept the mail.
    async fn send(&self, id: &OutboxId, mail: &Mail) -> Result<(), MailError>;
}

/// Maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 100;

/// An email address with or without a name. Examples: `Ada Lovelace <ada@example.org>`, `ada@example.org`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    address: Email,
}

/// The text is not a valid mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not of the form `Name <address@example.org>`")]
pub struct MailboxError;

impl Mailbox {
    /// Returns the name that mail programs show instead of the address; `None` if there is none.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the email address.
    #[must_use]
    pub const fn address(&self) -> &Email {
        &self.address
    }

    /// Returns the part of the address after the `@`.
    #[must_use]
    pub fn domain(&self) -> &str {
        let address = self.address.as_str();
        address
            .rsplit_once('@')
            .map_or(address, |(_, domain)| domain)
    }
}

impl FromStr for Mailbox {
    type Err = MailboxError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (name, address) = match text.strip_suffix('>') {
            Some(text) => text.rsplit_once('<').ok_or(MailboxError)?,
            None => ("", text),
        };
        let name = name.trim().trim_matches('"');
        let readable = !name.chars().any(char::is_control) && !name.contains(['<', '>', '"']);
        if !readable || name.chars().count() > MAX_NAME_CHARS {
            return Err(MailboxError);
        }
        Ok(Self {
            name: (!name.is_empty()).then(|| name.to_owned()),
            address: Email::parse(address).map_err(|_| MailboxError)?,
        })
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} <{}>", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn mailboxes_with_and_without_a_name_parse_and_format() {
        for (text, name, address) in [
            ("ada@example.org", None, "ada@example.org"),
            (" Ada <Ada@example.org> ", Some("Ada"), "ada@example.org"),
            (
                "\"Grüße, Ada\" <a@b.example.org>",
                Some("Grüße, Ada"),
                "a@b.example.org",
            ),
            ("<ada@example.org>", None, "ada@example.org"),
        ] {
            let mailbox: Mailbox = text.parse().unwrap();
            assert_eq!(
                (mailbox.name(), mailbox.address().as_str()),
                (name, address)
            );
            assert_eq!(mailbox.to_string().parse(), Ok(mailbox));
        }
    }

    #[test]
    fn malformed_mailboxes_and_header_injection_are_refused() {
        for bad in [
            "",
            "Ada",
            "Ada <ada>",
            "Ada ada@example.org>",
            "Ada\r\nBcc: eve@example.org <ada@example.org>",
            "<eve@example.org> <ada@example.org>",
            "Ada <ada@example.org",
            &format!("{} <ada@example.org>", "x".repeat(101)),
        ] {
            assert_eq!(bad.parse::<Mailbox>(), Err(MailboxError), "{bad}");
        }
    }
}
