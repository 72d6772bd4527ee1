//! TLS with rustls.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use core_domain::kernel::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;

use super::checks::CertificateChecks;
use super::verify::LenientVerifier;

/// Connects to servers over TLS if the `sslmode` requires or prefers it.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

/// Returns a connector that checks certificates as requested.
///
/// # Errors
/// [`StoreError::Backend`] if the root certificates cannot be read or there are none.
pub(crate) fn connector(
    _: SslMode,
    checks: CertificateChecks,
    root_certificates: Option<&Path>,
) -> Result<Tls, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verifier(checks, root_certificates, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(StoreError::backend)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(Tls(Arc::new(config)))
}

fn verifier(
    checks: CertificateChecks,
    root_certificates: Option<&Path>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, StoreError> {
    if checks == CertificateChecks::Nothing {
        return Ok(Arc::new(LenientVerifier::new(provider.clone(), None)));
    }
    let roots = Arc::new(roots(root_certificates)?);
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
    let verifier = verifier.build().map_err(StoreError::backend)?;
    Ok(match checks {
        CertificateChecks::Issuer => {
            Arc::new(LenientVerifier::new(provider.clone(), Some(verifier)))
        }
        CertificateChecks::Nothing | CertificateChecks::IssuerAndName => verifier,
    })
}

/// Returns the root certificates of the file, or of the operating system if no file is given.
fn roots(file: Option<&Path>) -> Result<RootCertStore, StoreError> {
    let certificates = match file {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path).map_err(StoreError::backend)?;
            let certificates: Result<Vec<_>, _> = certificates.collect();
            certificates.map_err(StoreError::backend)?
        }
        // Certificates of the system that cannot be read are skipped.
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() {
        return Err(StoreError::backend(
            "no root certificate was found to verify the database's certificate",
        ));
    }
    Ok(roots)
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, io::Error> {
        let config = self.0.clone();
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(Handshake { config, name })
    }
}

/// A TLS handshake that has not started yet.
pub(crate) struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        let handshake = TlsConnector::from(self.config).connect(self.name, socket);
        Box::pin(async move { Ok(TlsStream(Box::new(handshake.await?))) })
    }
}

/// A TLS connection to a server.
pub(crate) struct TlsStream(Box<tokio_rustls::client::TlsStream<Socket>>);

impl tokio_postgres::tls::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
