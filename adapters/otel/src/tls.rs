//! The TLS configuration of connections.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::error::{OtlpError, otlp_error};

/// Trusts the certificates of the file, or those of the operating system if no file is given.
///
/// # Errors
/// [`OtlpError`] describes the problem with the file.
pub(crate) fn configuration(file: Option<&Path>) -> Result<ClientConfig, OtlpError> {
    let refused = |problem: String| otlp_error("otlp.root_certificates", problem);
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
            let certificates: Vec<CertificateDer<'_>> =
                read.map_err(|error| refused(format!("{}: {error}", path.display())))?;
            roots.add_parsable_certificates(certificates);
            if roots.is_empty() {
                let problem = format!("{} has no root certificate", path.display());
                return Err(refused(problem));
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
        .map_err(|error| refused(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
