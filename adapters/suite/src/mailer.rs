//! Who sends the mail: what the builder was given, a server, or a folder.

use std::path::Path;
use std::sync::Arc;

use core_domain::port::Mailer;
use core_http::gateway::ConfigError;

use crate::{OutboxFolder, SuiteBuilder};

/// The mailer that was chosen.
pub(crate) fn mailer(
    builder: &SuiteBuilder,
    folder: &Path,
) -> Result<Arc<dyn Mailer>, ConfigError> {
    if let Some(mailer) = &builder.mailer {
        return Ok(Arc::clone(mailer));
    }
    #[cfg(feature = "smtp")]
    if let Some(mailer) = smtp(builder)? {
        return Ok(Arc::new(mailer));
    }
    let from = builder.settings.mail.mailbox()?;
    Ok(Arc::new(OutboxFolder::new(folder.join("outbox"), from)))
}

/// Tells whether the mailer that was chosen could be made.
#[cfg(feature = "smtp")]
pub(crate) fn check_mailer(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    smtp(builder).map(drop)
}

/// Tells whether the mailer that was chosen could be made.
#[cfg(not(feature = "smtp"))]
pub(crate) fn check_mailer(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    builder.settings.mail.mailbox().map(drop)
}

#[cfg(feature = "smtp")]
fn smtp(builder: &SuiteBuilder) -> Result<Option<core_smtp::SmtpMailer>, ConfigError> {
    let refused = |setting, problem: String| ConfigError { setting, problem };
    let Some(url) = &builder.smtp else {
        return Ok(None);
    };
    let from = builder.settings.mail.mailbox()?;
    if from.domain().ends_with(".invalid") {
        let problem = "must be an address that exists where a server sends the mail";
        return Err(refused("mail.sender", problem.to_owned()));
    }
    let url = url.parse::<core_smtp::SmtpUrl>();
    let url = url.map_err(|error| refused("smtp", error.to_string()))?;
    let mailer = core_smtp::SmtpMailer::new(url, from);
    let mailer = mailer.map_err(|error| refused("smtp", error.to_string()))?;
    Ok(Some(mailer))
}
