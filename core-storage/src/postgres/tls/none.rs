//! Replaces TLS in builds without the feature. Servers that require TLS cannot be reached.

use std::path::Path;

use core_domain::kernel::StoreError;
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::NoTlsStream;

use super::checks::CertificateChecks;

pub(crate) type Tls = NoTls;
pub(crate) type TlsStream = NoTlsStream;

/// Returns a connector without TLS.
///
/// # Errors
/// [`StoreError::Backend`] if the URL requires TLS.
pub(crate) fn connector(
    mode: SslMode,
    _: CertificateChecks,
    _: Option<&Path>,
) -> Result<Tls, StoreError> {
    match mode {
        SslMode::Disable | SslMode::Prefer => Ok(NoTls),
        _ => Err(StoreError::backend(
            "the database URL requires TLS, but this program was built without it",
        )),
    }
}
