//! Implements the mailer port with SMTP.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::OutboxId;
use core_domain::port::{Mail, MailError, Mailbox, Mailer};
use lettre::Address;

use crate::connections::Connections;
use crate::failure::{CheckError, SendError};
use crate::message::message;
use crate::url::SmtpUrl;

/// The default maximum duration of sending a mail, from the connection to the server's acceptance.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends mails through an SMTP server.
///
/// A 5xx reply to a mail is a permanent error. These errors are transient, so that the mail is retried:
///
/// - A 4xx reply.
/// - A server that cannot be reached or is too slow.
/// - A TLS failure or a refused login. Both also log a warning, because the operator must fix the configuration.
#[derive(Clone, Debug)]
pub struct SmtpMailer {
    connections: Connections,
    from: Mailbox,
    timeout: Duration,
}

/// The reason why a mailer cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SmtpError {
    /// The sender's address is not valid in SMTP.
    #[error("the sender's address is not valid in SMTP")]
    Sender,
    /// The file of certificates cannot be read.
    #[error("the certificates at `ca` cannot be read: {0}")]
    Certificates(#[source] io::Error),
    /// The file contains no certificate, or TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl SmtpMailer {
    /// Creates a mailer for this server and sender. It connects when it sends the first mail.
    ///
    /// # Errors
    /// [`SmtpError`] if the sender's address is not valid in SMTP, or if the certificates at `ca` cannot be used.
    pub fn new(url: SmtpUrl, from: Mailbox) -> Result<Self, SmtpError> {
        let sender = from.address().as_str().parse::<Address>();
        sender.map_err(|_| SmtpError::Sender)?;
        let pem = url.ca().map(std::fs::read).transpose();
        let pem = pem.map_err(SmtpError::Certificates)?;
        if let Some(pem) = &pem
            && !pem.windows(PEM_BEGIN.len()).any(|text| text == PEM_BEGIN)
        {
            return Err(SmtpError::Tls(
                "the file `ca` contains no certificate".to_owned(),
            ));
        }
        let connections = Connections::new(url, from.domain(), pem.as_deref());
        Ok(Self {
            connections: connections.map_err(|error| SmtpError::Tls(error.to_string()))?,
            from,
            timeout: DEFAULT_TIMEOUT,
        })
    }

    /// Sets the maximum duration of sending a mail. Default: 30 s.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Checks that the server accepts mails of this mailer: connects, starts TLS and signs in as for a mail, and sends
    /// `NOOP`. No mail is sent.
    ///
    /// # Errors
    /// [`CheckError`] if the server cannot be reached in time, is not trusted, or refuses the login.
    pub async fn check(&self) -> Result<(), CheckError> {
        let checked = tokio::time::timeout(self.timeout, self.connections.check()).await;
        Ok(checked.unwrap_or(Err(SendError::TimedOut))?)
    }

    async fn hand_over(&self, id: &OutboxId, mail: &Mail) -> Result<(), SendError> {
        let message = message(id, mail, &self.from)?;
        let mut connection = self.connections.acquire().await?;
        let taken = connection
            .send(message.envelope(), &message.formatted())
            .await;
        let taken = taken.map_err(|error| SendError::of_mail(&error, mail));
        self.connections.release(connection);
        taken.map(drop)
    }
}

/// The first line of a certificate in PEM.
const PEM_BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, id: &OutboxId, mail: &Mail) -> Result<(), MailError> {
        let taken = tokio::time::timeout(self.timeout, self.hand_over(id, mail)).await;
        let taken = taken.unwrap_or(Err(SendError::TimedOut));
        if let Err(failure) = &taken
            && failure.is_misconfiguration()
        {
            tracing::warn!(%failure, "mail cannot be sent; check the login and TLS settings of the mail server");
        }
        taken?;
        tracing::info!(%id, to = %mail.to, "a mail was accepted by the mail server");
        Ok(())
    }
}
