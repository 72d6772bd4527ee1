//! What stands for TLS without the feature: a server that insists on it is not reached.

use std::path::Path;

use core_domain::kernel::StoreError;
use tokio_postgres::NoTls;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::NoTlsStream;

use super::checks::Checks;

pub(crate) type Tls = NoTls;
pub(crate) type TlsStream = NoTlsStream;

/// # Errors
/// [`StoreError::Backend`] when TLS is demanded.
pub(crate) fn connector(mode: SslMode, _: Checks, _: Option<&Path>) -> Result<Tls, StoreError> {
    match mode {
        SslMode::Disable | SslMode::Prefer => Ok(NoTls),
        _ => Err(StoreError::backend(
            "the database address asks for TLS, which this program was built without",
        )),
    }
}
