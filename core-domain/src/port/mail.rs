//! Mail, as it leaves the installation.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Cause;
use crate::kernel::{Email, OutboxId};

/// A mail to one person, in two forms of the same text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// Whom it is for.
    pub to: Email,
    /// What it is about; one line.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The same as HTML.
    pub html: String,
}

// Links in a mail are secrets, so its text stays out of logs.
impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mail")
            .field("to", &self.to)
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Why a mail was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MailError {
    /// Perhaps the next time: the server is away, busy or does not know yet.
    #[error("the mail was not taken, for now")]
    Transient(#[source] Cause),
    /// Never: the server refuses this mail or this recipient.
    #[error("the mail was refused")]
    Permanent(#[source] Cause),
}

/// Sends mail.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Mailer: Send + Sync + std::fmt::Debug {
    /// Hands a mail over. The same one may come again after a crash; its id then is the same.
    ///
    /// # Errors
    /// [`MailError`] when it was not taken.
    async fn send(&self, id: &OutboxId, mail: &Mail) -> Result<(), MailError>;
}

/// The most characters of a name.
const LONGEST_NAME: usize = 100;

/// An address with a name, `Ada Lovelace <ada@example.org>`, or an address alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    name: Option<String>,
    address: Email,
}

/// A text is no mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not of the form `Name <address@example.org>`")]
pub struct MailboxError;

impl Mailbox {
    /// What people read in place of the address.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The address.
    #[must_use]
    pub const fn address(&self) -> &Email {
        &self.address
    }

    /// What stands behind the `@` of the address.
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
        if !readable || name.chars().count() > LONGEST_NAME {
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
    fn a_mailbox_is_an_address_with_or_without_a_name_and_is_read_as_it_is_written() {
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
    fn what_is_no_mailbox_or_would_write_another_header_is_refused() {
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
