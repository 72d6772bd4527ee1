//! How mails are handed over.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::port::Mailbox;
use core_domain::use_case::shared::LONGEST_HANDOVER;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Who mails come from, and how they are handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailOptions {
    /// Who mails come from: `Name <address@example.org>`. An address that does not exist unless set; a mail server takes
    /// none from there.
    pub sender: String,
    /// Mails handed over at a time at the most. 8 unless set.
    pub concurrency: u32,
    /// How long handing one mail over may take, 1 min at the most. 30 s unless set.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
}

impl Default for MailOptions {
    fn default() -> Self {
        Self {
            sender: "Core <no-reply@core.invalid>".to_owned(),
            concurrency: 8,
            timeout: Duration::from_secs(30),
        }
    }
}

impl MailOptions {
    /// Tells whether mails can be sent with them.
    ///
    /// # Errors
    /// [`ConfigError`] names the first one that is not valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.mailbox()?;
        if self.concurrency == 0 {
            return Err(refused("mail.concurrency", "must be more than nothing"));
        }
        if self.timeout.is_zero() || self.timeout > LONGEST_HANDOVER {
            return Err(refused("mail.timeout", "must be between nothing and 1 min"));
        }
        Ok(())
    }

    /// Who mails come from.
    ///
    /// # Errors
    /// [`ConfigError`] when it is no mailbox.
    pub fn mailbox(&self) -> Result<Mailbox, ConfigError> {
        let mailbox = self.sender.parse();
        mailbox.map_err(|_| refused("mail.sender", "must be of the form Name <a@example.org>"))
    }
}

fn refused(setting: &'static str, problem: &str) -> ConfigError {
    ConfigError {
        setting,
        problem: problem.to_owned(),
    }
}
