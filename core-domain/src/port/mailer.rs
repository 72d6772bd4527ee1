//! Mail, as it leaves the installation.

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
