//! The TLS configuration of connections.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Trusts the certificates of the file, or those of the operating system if no file is given.
///
/// # Errors
/// The problem with the file, for an operator.
pub(crate) fn configuration(file: Option<&Path>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
            let certificates: Vec<CertificateDer<'_>> =
                read.map_err(|error| format!("{}: {error}", path.display()))?;
            roots.add_parsable_certificates(certificates);
            if roots.is_empty() {
                return Err(format!("{} has no root certificate", path.display()));
            }
        }
        // Certificates of the system that cannot be read are skipped. Without any, connections with TLS fail.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
