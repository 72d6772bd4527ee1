//! Settings for sending mails.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::port::Mailbox;
use core_domain::use_case::shared::MAX_HANDOVER_TIME;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// The sender address of mails, and limits for sending them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailOptions {
    /// The sender address: `Name <address@example.org>`. Default: an address in the domain `core.invalid`, which does
    /// not exist; with a mail server an existing address is required.
    pub sender: String,
    /// Maximum number of mails that are sent at the same time. Default: 8.
    pub concurrency: u32,
    /// Maximum time to send one mail, at most 1 min. Default: 30 s.
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
    /// Checks that mails can be sent with these options.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.mailbox()?;
        if self.concurrency == 0 {
            return Err(config_error("mail.concurrency", "must be greater than 0"));
        }
        if self.timeout.is_zero() || self.timeout > MAX_HANDOVER_TIME {
            return Err(config_error(
                "mail.timeout",
                "must be greater than 0 and at most 1 min",
            ));
        }
        Ok(())
    }

    /// Returns the sender address.
    ///
    /// # Errors
    /// [`ConfigError`] if the text is not a mailbox.
    pub fn mailbox(&self) -> Result<Mailbox, ConfigError> {
        let mailbox = self.sender.parse();
        mailbox.map_err(|_| {
            config_error(
                "mail.sender",
                "must have the form Name <address@example.org>",
            )
        })
    }
}

fn config_error(setting: &'static str, problem: &str) -> ConfigError {
    ConfigError {
        setting,
        problem: problem.to_owned(),
    }
}
