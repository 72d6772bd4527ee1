//! The extent to which a server's certificate is checked.

/// The checks of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateChecks {
    /// Accepts any certificate.
    Nothing,
    /// Checks the issuer of the certificate.
    Issuer,
    /// Checks the issuer, and that the certificate is for the name of the server.
    IssuerAndName,
}
