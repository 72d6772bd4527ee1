//! Connections to the mail server. They are opened with TLS and a login, and are reused for a while.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::commands::Noop;
use lettre::transport::smtp::extension::ClientId;

use crate::failure::SendError;
use crate::url::{Security, SmtpUrl};

/// How long an idle connection is kept. Servers close idle connections after minutes.
const MAX_IDLE: Duration = Duration::from_secs(20);

/// Maximum time for the end of a connection that was only checked.
const QUIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The supported authentication mechanisms, in the order of preference.
const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];

/// The idle connections, each with its number.
#[derive(Default)]
struct Idle {
    connections: Vec<(u64, AsyncSmtpConnection)>,
    next: u64,
}

/// Opens connections and reuses them.
#[derive(Clone)]
pub(crate) struct Connections {
    url: SmtpUrl,
    /// The name with which the client introduces itself (EHLO).
    hello: ClientId,
    tls: TlsParameters,
    idle: Arc<Mutex<Idle>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Connections {
    /// Creates the connections to this server. `pem` contains the certificates to trust instead of those of the
    /// operating system.
    pub(crate) fn new(url: SmtpUrl, hello: &str, pem: Option<&[u8]>) -> Result<Self, Error> {
        let mut tls = TlsParameters::builder(url.host().to_owned());
        if let Some(pem) = pem {
            let trusted = Certificate::from_pem(pem)?;
            tls = tls
                .certificate_store(CertificateStore::None)
                .add_root_certificate(trusted);
        }
        Ok(Self {
            tls: tls.build()?,
            hello: ClientId::Domain(hello.to_owned()),
            url,
            idle: Arc::default(),
        })
    }

    /// Returns a connection that is ready for a mail.
    pub(crate) async fn acquire(&self) -> Result<AsyncSmtpConnection, SendError> {
        while let Some(mut kept) = self.take_idle() {
            if kept.test_connected().await {
                return Ok(kept);
            }
        }
        self.open().await
    }

    /// Opens a connection as for a mail, sends a command without effect, and closes the connection.
    pub(crate) async fn check(&self) -> Result<(), SendError> {
        let mut connection = self.open().await?;
        let noop = connection.command(Noop).await;
        noop.map_err(|error| SendError::of_connection(&error))?;
        // The server has accepted the connection, so its response to QUIT does not matter.
        let _ = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
        Ok(())
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<AsyncSmtpConnection> {
        let kept = self.idle().connections.pop();
        kept.map(|(_, connection)| connection)
    }

    /// Keeps a connection for a while, for the next mail.
    pub(crate) fn release(&self, connection: AsyncSmtpConnection) {
        if connection.has_broken() {
            return;
        }
        let number = {
            let mut idle = self.idle();
            idle.next += 1;
            let number = idle.next;
            idle.connections.push((number, connection));
            number
        };
        let connections = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(MAX_IDLE).await;
            if let Some(mut unused) = connections.take_numbered(number) {
                // The server may have closed the connection already.
                let _ = tokio::time::timeout(MAX_IDLE, unused.quit()).await;
            }
        });
    }

    /// Takes the connection if no mail has used it since.
    fn take_numbered(&self, number: u64) -> Option<AsyncSmtpConnection> {
        let mut idle = self.idle();
        let at = idle.connections.iter().position(|(of, _)| *of == number)?;
        Some(idle.connections.swap_remove(at).1)
    }

    async fn open(&self) -> Result<AsyncSmtpConnection, SendError> {
        let at_once = self.url.security() == Security::Implicit;
        let server = (self.url.host(), self.url.port());
        let mut connection = AsyncSmtpConnection::connect_tokio1(
            server,
            None,
            &self.hello,
            at_once.then(|| self.tls.clone()),
            None,
        )
        .await
        .map_err(|error| SendError::of_connection(&error))?;
        self.start_tls(&mut connection).await?;
        self.log_in(&mut connection).await?;
        Ok(connection)
    }

    async fn start_tls(&self, connection: &mut AsyncSmtpConnection) -> Result<(), SendError> {
        let wanted = match self.url.security() {
            Security::Implicit | Security::None => false,
            Security::Required => true,
            Security::Opportunistic => connection.can_starttls(),
        };
        if !wanted {
            return Ok(());
        }
        if !connection.can_starttls() {
            return Err(SendError::Tls("it does not offer STARTTLS".to_owned()));
        }
        let started = connection.starttls(self.tls.clone(), &self.hello).await;
        started.map_err(|error| SendError::of_connection(&error))
    }

    async fn log_in(&self, connection: &mut AsyncSmtpConnection) -> Result<(), SendError> {
        let Some(login) = self.url.login() else {
            return Ok(());
        };
        let credentials = Credentials::new(login.user.clone(), login.password.clone());
        let done = connection.auth(&MECHANISMS, &credentials).await;
        done.map_err(|error| SendError::of_login(&error, &login.password))?;
        Ok(())
    }
}
