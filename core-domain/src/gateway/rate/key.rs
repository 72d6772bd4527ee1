//! The keys under which requests are counted for rate limits.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use super::RatePolicy;
use crate::gateway::address::client_network;
use crate::gateway::path::normalize_path;

/// The subject for which the requests of a client are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateSubject<'s> {
    /// All requests of the client.
    Everything,
    /// A path. All spellings of a path are one subject.
    Path(&'s str),
    /// An endpoint of a service, whatever the parameters in its path.
    Endpoint {
        /// The name of the service.
        service: &'s str,
        /// The id of the endpoint, which is unique in the service.
        endpoint: &'s str,
    },
    /// All routes that do not exist. Otherwise each random path would have its own window.
    UnknownRoutes,
    /// Any text, such as an e-mail address or a credential.
    Text(&'s str),
}

/// The key of a client and a subject under a policy. It is a digest: all keys have the same size, and callers cannot
/// create collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey([u8; 16]);

impl RateKey {
    /// Returns the key of a client and a subject under a policy. All addresses of an IPv6 /64 network are one client.
    #[must_use]
    pub fn new(policy: &RatePolicy, client: IpAddr, subject: RateSubject<'_>) -> Self {
        let mut digest = Sha256::new();
        digest.update(policy.name().as_bytes());
        match client_network(client) {
            IpAddr::V4(v4) => {
                digest.update([4]);
                digest.update(v4.octets());
            }
            IpAddr::V6(v6) => {
                digest.update([6]);
                digest.update(v6.octets());
            }
        }
        match subject {
            RateSubject::Everything => digest.update([0]),
            RateSubject::Path(path) => {
                digest.update([1]);
                digest.update(normalize_path(path));
            }
            RateSubject::Endpoint { service, endpoint } => {
                digest.update([2]);
                digest.update(service.as_bytes());
                digest.update([0]);
                digest.update(endpoint.as_bytes());
            }
            RateSubject::UnknownRoutes => digest.update([3]),
            RateSubject::Text(text) => {
                digest.update([4]);
                digest.update(text.as_bytes());
            }
        }
        let mut key = [0_u8; 16];
        key.copy_from_slice(&digest.finalize()[..16]);
        Self(key)
    }

    /// Returns the digest. Its first byte is evenly distributed and can select a shard.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    #[cfg(test)]
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(name: &str, client: &str, subject: RateSubject<'_>) -> RateKey {
        let policy = RatePolicy::new(name, 1, Duration::from_secs(60)).unwrap();
        RateKey::new(&policy, client.parse().unwrap(), subject)
    }

    #[test]
    fn line_11_spellings_of_one_path_have_the_same_key() {
        let path = |path| key("a", "1.2.3.4", RateSubject::Path(path));
        assert_eq!(path("/a/b"), path("/a/%62/"));
        assert_ne!(path("/a/b"), path("/a/c"));
    }

    #[test]
    fn keys_differ_by_policy_client_and_kind_of_subject() {
        let subjects = [
            RateSubject::Everything,
            RateSubject::Path("x"),
            RateSubject::Endpoint {
                service: "x",
                endpoint: "y",
            },
            RateSubject::Endpoint {
                service: "xy",
                endpoint: "",
            },
            RateSubject::UnknownRoutes,
            RateSubject::Text("x"),
        ];
        let mut keys = Vec::new();
        for name in ["a", "b"] {
            for client in ["1.2.3.4", "1.2.3.5", "2001:db8::1", "2001:db8:0:1::1"] {
                keys.extend(subjects.map(|subject| key(name, client, subject)));
            }
        }
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }

    #[test]
    fn line_11_the_addresses_of_a_64_bit_network_are_one_client() {
        let at = |client| key("a", client, RateSubject::Everything);
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff"));
        assert_eq!(at("::ffff:1.2.3.4"), at("1.2.3.4"));
    }
}
