//! TLS to the server.

#[cfg(not(feature = "postgres-tls"))]
mod none;
#[cfg(feature = "postgres-tls")]
mod rustls;
#[cfg(feature = "postgres-tls")]
mod verify;

#[cfg(not(feature = "postgres-tls"))]
pub(super) use none::{Tls, TlsStream, connector};
#[cfg(feature = "postgres-tls")]
pub(super) use rustls::{Tls, TlsStream, connector};

/// What is checked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    Nothing,
    /// Who has signed it.
    Issuer,
    /// As well that it belongs to the name of the server.
    IssuerAndName,
}
