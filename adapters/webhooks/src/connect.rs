//! Connects to the receivers of webhooks, and only to addresses that were checked.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use core_domain::port::{Cause, WebhookSendError};
use core_domain::shared::{UrlTarget, WebhookTargets};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The maximum number of addresses of a host that are tried.
const MAX_ADDRESSES: usize = 4;

/// The error of the TLS setup.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up")]
pub struct TlsError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// A connection with or without TLS.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Unpin> Connection for C {}

/// Connects to the receivers to which webhooks may be sent.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) targets: WebhookTargets,
    tls: Arc<ClientConfig>,
}

impl Connector {
    /// Creates a connector that trusts these certificates, or those of the operating system if none are given.
    pub(crate) fn new(
        targets: WebhookTargets,
        trusted: Option<Vec<CertificateDer<'static>>>,
    ) -> Result<Self, TlsError> {
        // Certificates of the operating system that cannot be read are skipped.
        let trusted = trusted.unwrap_or_else(|| rustls_native_certs::load_native_certs().certs);
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted);
        if roots.is_empty() {
            tracing::warn!("no root certificate was found: webhooks over TLS will fail");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| TlsError(error.into()))?;
        Ok(Self {
            targets,
            tls: Arc::new(config.with_root_certificates(roots).with_no_client_auth()),
        })
    }

    pub(crate) async fn connect(
        &self,
        target: UrlTarget<'_>,
    ) -> Result<Box<dyn Connection>, WebhookSendError> {
        // The URL may have been allowed when the webhook was created.
        if !target.is_https && !self.targets.allow_http {
            return Err(WebhookSendError::Forbidden);
        }
        let plain = open_first(&self.resolve_allowed_addresses(target).await?).await?;
        if !target.is_https {
            return Ok(Box::new(plain));
        }
        let name = ServerName::try_from(target.host.to_owned()).map_err(unreachable_error)?;
        let connected = TlsConnector::from(Arc::clone(&self.tls))
            .connect(name, plain)
            .await;
        Ok(Box::new(connected.map_err(unreachable_error)?))
    }

    /// Resolves the host, and returns the addresses to which webhooks may be sent.
    async fn resolve_allowed_addresses(
        &self,
        target: UrlTarget<'_>,
    ) -> Result<Vec<SocketAddr>, WebhookSendError> {
        let unknown = |cause: Cause| WebhookSendError::UnknownHost(cause);
        let found = tokio::net::lookup_host((target.host, target.port)).await;
        let found: Vec<SocketAddr> = found.map_err(|error| unknown(Cause::new(error)))?.collect();
        if found.is_empty() {
            return Err(unknown("the host has no address".into()));
        }
        let allowed = found
            .into_iter()
            .filter(|address| self.targets.allows(address.ip()));
        let allowed: Vec<SocketAddr> = allowed.take(MAX_ADDRESSES).collect();
        if allowed.is_empty() {
            return Err(WebhookSendError::Forbidden);
        }
        Ok(allowed)
    }
}

/// Connects to the first of these addresses that accepts a connection.
async fn open_first(addresses: &[SocketAddr]) -> Result<TcpStream, WebhookSendError> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(unreachable_error)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(unreachable_error(last))
}

fn unreachable_error(error: impl std::error::Error + Send + Sync + 'static) -> WebhookSendError {
    WebhookSendError::Unreachable(Cause::new(error))
}
