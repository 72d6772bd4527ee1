//! TLS connections to the server.

mod checks;
#[cfg(not(feature = "postgres-tls"))]
mod none;
#[cfg(feature = "postgres-tls")]
mod rustls;
#[cfg(feature = "postgres-tls")]
mod verify;

pub(super) use checks::CertificateChecks;
#[cfg(not(feature = "postgres-tls"))]
pub(super) use none::{Tls, TlsStream, connector};
#[cfg(feature = "postgres-tls")]
pub(super) use rustls::{Tls, TlsStream, connector};
