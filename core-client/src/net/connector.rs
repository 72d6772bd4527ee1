//! Connections over plain HTTP and TLS.

use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// Creates a connector. The certificates of the system are only read if `tls` is true, because that takes time.
pub(crate) fn connector(
    tls: bool,
    connect_timeout: Duration,
) -> Result<HttpsConnector<HttpConnector>> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(connect_timeout));
    http.set_nodelay(true);
    let roots = if tls {
        system_roots()?
    } else {
        RootCertStore::empty()
    };
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Setup(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http))
}

/// Returns the certificate authorities that the system trusts.
fn system_roots() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let what = "the system has no certificate authorities; install the package ca-certificates";
        return Err(Error::Setup(what.to_owned()));
    }
    Ok(roots)
}
