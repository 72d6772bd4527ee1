//! The DNS as the world sees it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use async_trait::async_trait;

use super::Cause;

/// Why a name could not be looked up. Says nothing about the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DnsError {
    /// No answer in time, or one that is none: no name server, a time-out, `SERVFAIL`.
    #[error("the DNS could not be asked")]
    Unavailable(#[source] Cause),
}

/// Looks names up. A name that does not exist, or has no such records, has none: that is no error. Names have no dot of the
/// root, and may have labels that no host has (`_core-verification`, `*`). A look-up ends within 20 s, and answers nothing
/// that was found out more than a minute ago.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait DnsResolver: Send + Sync + std::fmt::Debug {
    /// The name that a name is another name for, in lower case without the dot of the root; not that one's own.
    ///
    /// # Errors
    /// [`DnsError`] when that is not known.
    async fn cname(&self, name: &str) -> Result<Option<String>, DnsError>;

    /// The texts of a name; each record's parts joined.
    ///
    /// # Errors
    /// [`DnsError`] when they are not known.
    async fn txt(&self, name: &str) -> Result<Vec<String>, DnsError>;

    /// The IPv4 and IPv6 addresses of a name, or of the name it leads to.
    ///
    /// # Errors
    /// [`DnsError`] when they are not known.
    async fn addresses(&self, name: &str) -> Result<BTreeSet<IpAddr>, DnsError>;
}
