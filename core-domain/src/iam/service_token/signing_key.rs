//! The keys that service tokens are signed with.

use serde::Serialize;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{Ed25519Public, Timestamp, record};

/// A key that service tokens are signed with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct SigningKey {
    /// The name of the key: the thumbprint of its public half.
    pub kid: String,
    /// 1 for the first key, one more for each that follows: of nodes that make the next one at once, one succeeds.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub generation: i64,
    /// The public half, as the `x` of a JSON Web Key.
    pub public_key: String,
    /// The private half, encrypted.
    #[serde(skip)]
    pub sealed_private_key: String,
    /// From when on tokens are signed with it.
    pub active_from: Timestamp,
    /// When it was made, and published.
    pub created_at: Timestamp,
}

record! {
    SigningKey as "signing key" by kid, asked SigningKeyQuery;
    audited;
}

/// Questions about signing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningKeyQuery {
    /// All, oldest first.
    All,
}

impl SigningKey {
    /// The public half; `None` when the record was damaged.
    #[must_use]
    pub fn public(&self) -> Option<Ed25519Public> {
        Ed25519Public::read(&self.public_key)
    }
}
