//! How much of a server's certificate is checked.

/// What is checked of the server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    Nothing,
    /// Who has signed it.
    Issuer,
    /// As well that it belongs to the name of the server.
    IssuerAndName,
}
