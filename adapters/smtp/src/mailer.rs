//! The mailer.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::OutboxId;
use core_domain::port::{Mail, MailError, Mailbox, Mailer, mime_message};
use lettre::Address;
use lettre::address::Envelope;

use crate::connections::Connections;
use crate::failure::Failure;
use crate::url::SmtpUrl;

/// How long a mail may take, from the connection to the server's word that it has it, unless set.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Hands mails to a server. A reply of 4xx, a server that cannot be reached or is too slow, TLS that fails and a login that
/// is refused are worth another try (the last two with a warning in the log: somebody must do something); a reply of 5xx to
/// a mail is not.
#[derive(Clone, Debug)]
pub struct SmtpMailer {
    connections: Connections,
    from: Mailbox,
    sender: Address,
    timeout: Duration,
}

/// Why there can be no such mailer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SmtpError {
    /// The sender's address is none that SMTP knows.
    #[error("the sender's address cannot be written in SMTP")]
    Sender,
    /// The file of certificates cannot be read.
    #[error("the certificates at `ca` cannot be read: {0}")]
    Certificates(#[source] io::Error),
    /// There are no certificates in it, or TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl SmtpMailer {
    /// Mails from this sender, by this server. Connects with the first mail.
    ///
    /// # Errors
    /// [`SmtpError`] when the certificates at `ca` cannot be used.
    pub fn new(url: SmtpUrl, from: Mailbox) -> Result<Self, SmtpError> {
        let sender = from.address().as_str().parse();
        let sender = sender.map_err(|_| SmtpError::Sender)?;
        let pem = url.ca().map(std::fs::read).transpose();
        let pem = pem.map_err(SmtpError::Certificates)?;
        if let Some(pem) = &pem
            && !pem.windows(BEGIN.len()).any(|text| text == BEGIN)
        {
            return Err(SmtpError::Tls("there is no certificate at `ca`".to_owned()));
        }
        let connections = Connections::new(url, from.domain(), pem.as_deref());
        Ok(Self {
            connections: connections.map_err(|error| SmtpError::Tls(error.to_string()))?,
            from,
            sender,
            timeout: TIMEOUT,
        })
    }

    /// How long a mail may take. 30 s unless set.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    async fn hand_over(&self, id: &OutboxId, mail: &Mail) -> Result<(), Failure> {
        let to: Address = mail.to.as_str().parse().map_err(|_| Failure::Address)?;
        let envelope = Envelope::new(Some(self.sender.clone()), vec![to]);
        let envelope = envelope.map_err(|_| Failure::Address)?;
        let message = mime_message(id, mail, &self.from);
        let mut connection = self.connections.take().await?;
        let taken = connection.send(&envelope, message.as_bytes()).await;
        let taken = taken.map_err(|error| Failure::of_mail(&error, mail));
        self.connections.keep(connection);
        taken.map(drop)
    }
}

/// What a certificate begins with.
const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

#[async_trait]
impl Mailer for SmtpMailer {
    async fn send(&self, id: &OutboxId, mail: &Mail) -> Result<(), MailError> {
        let taken = tokio::time::timeout(self.timeout, self.hand_over(id, mail)).await;
        let taken = taken.unwrap_or(Err(Failure::TimedOut));
        if let Err(failure) = &taken
            && failure.is_misconfiguration()
        {
            tracing::warn!(%failure, "no mail can be sent");
        }
        taken?;
        tracing::info!(%id, to = %mail.to, "a mail was handed over");
        Ok(())
    }
}
