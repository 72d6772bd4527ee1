//! The options of logs.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::{Extensions, HeaderMap};
use serde::{Deserialize, Serialize};

/// The options of the logs of workers and sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogOptions {
    /// Number of lines of each worker and site that are kept. Up to twice as many are stored, each with at most 16 KiB.
    /// Default: 1,000.
    pub lines: usize,
    /// If `true`, the lines of requests contain the IP address of the client. Default: `false`.
    pub client_addresses: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            lines: 1_000,
            client_addresses: false,
        }
    }
}

type AddressOf = dyn Fn(&Extensions, &HeaderMap) -> Option<IpAddr> + Send + Sync;

/// A function that returns the address of the client of a request. The server of the sites decides where the address
/// comes from, for example from a proxy that it trusts.
#[derive(Clone)]
pub struct ClientAddress(Arc<AddressOf>);

impl ClientAddress {
    /// Creates the function.
    pub fn new(
        address_of: impl Fn(&Extensions, &HeaderMap) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(address_of))
    }

    /// Returns the address of the client of a request; `None` if it is unknown.
    #[must_use]
    pub fn of(&self, extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
        (self.0)(extensions, headers)
    }
}

impl fmt::Debug for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientAddress")
    }
}
