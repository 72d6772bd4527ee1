//! Lookups in the public DNS.

use std::collections::BTreeSet;
use std::net::IpAddr;

use async_trait::async_trait;

use super::Cause;

/// The reason why a lookup failed. It says nothing about the records of the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DnsError {
    /// No valid response arrived in time: no name server, a time-out or `SERVFAIL`.
    #[error("the DNS lookup failed")]
    Unavailable(#[source] Cause),
}

/// Looks up DNS records. A name that does not exist or has no such records is not an error. Names have no trailing dot.
/// They may have labels that host names cannot have (`_core-verification`, `*`). A lookup ends within 20 seconds and
/// returns no data that is older than one minute.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait DnsResolver: Send + Sync + std::fmt::Debug {
    /// Returns the target of the CNAME record of a name, in lower case without the trailing dot. Does not follow
    /// further CNAME records.
    ///
    /// # Errors
    /// [`DnsError`] if the lookup fails.
    async fn cname(&self, name: &str) -> Result<Option<String>, DnsError>;

    /// Returns the TXT records of a name. The parts of each record are joined.
    ///
    /// # Errors
    /// [`DnsError`] if the lookup fails.
    async fn txt(&self, name: &str) -> Result<Vec<String>, DnsError>;

    /// Returns the IPv4 and IPv6 addresses of a name. Follows CNAME records.
    ///
    /// # Errors
    /// [`DnsError`] if the lookup fails.
    async fn addresses(&self, name: &str) -> Result<BTreeSet<IpAddr>, DnsError>;
}
