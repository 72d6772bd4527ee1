//! Opens byte streams to the server: TCP, TLS or a Unix socket.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo, RedisConnectionInfo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A byte stream to the server.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The server that connections are opened to.
pub(crate) struct Target {
    pub(crate) server: ConnectionInfo,
    /// `None` if TLS is not used.
    pub(crate) tls: Option<TlsSetup>,
    pub(crate) response_timeout: Duration,
    pub(crate) connect_timeout: Duration,
}

impl Target {
    /// Returns the credentials, the database and the protocol.
    pub(crate) fn login(&self) -> &RedisConnectionInfo {
        self.server.redis_settings()
    }

    /// Returns the address for log lines, without credentials.
    pub(crate) fn address(&self) -> String {
        self.server.addr().to_string()
    }

    /// Opens a stream. The caller limits the time.
    pub(crate) async fn open_stream(&self) -> io::Result<Box<dyn Stream>> {
        let (host, port) = match self.server.addr() {
            ConnectionAddr::Tcp(host, port) => (host.as_str(), *port),
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                return Ok(Box::new(tokio::net::UnixStream::connect(path).await?));
            }
            _ => return Err(io::ErrorKind::Unsupported.into()),
        };
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            Some(tls) => tls.wrap(host, stream).await,
            None => Ok(Box::new(stream)),
        }
    }
}

/// The configuration of TLS.
pub(crate) struct TlsSetup(Arc<ClientConfig>);

impl TlsSetup {
    /// Trusts the certificates of the file, or those of the operating system if no file is given.
    pub(crate) fn new(file: Option<&Path>) -> Result<Self, String> {
        let certificates = match file {
            Some(path) => {
                let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
                read.map_err(|error| format!("{}: {error}", path.display()))?
            }
            // Certificates of the system that cannot be read are skipped.
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        if roots.is_empty() {
            return Err("no root certificate was found".to_owned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    async fn wrap(&self, host: &str, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        Ok(Box::new(connector.connect(name, stream).await?))
    }
}
