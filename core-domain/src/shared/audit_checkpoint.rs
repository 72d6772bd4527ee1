//! Checkpoints: where a chain of the audit stood at an instant, signed, so that what comes later can be held against it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    AuditCheckpointId, Ed25519Private, Ed25519Public, PlatformId, Timestamp, Unverified, record,
};

use super::{AuditChain, AuditHead};

/// A chain has a checkpoint after so many entries at the latest.
pub const CHECKPOINT_EVERY: i64 = 1_000;

/// An entry waits no longer than this for a checkpoint, in seconds.
pub const CHECKPOINT_AFTER: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// The type in the header of a checkpoint's signature.
const TYPE: &str = "core-audit-checkpoint+jwt";

/// A signed statement of where a chain of the audit stood. Never changed, never removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditCheckpoint {
    /// The checkpoint's id.
    pub id: AuditCheckpointId,
    /// The platform whose chain it is; `null` for that of the installation's own entries.
    pub platform_id: Option<PlatformId>,
    /// The chain: `installation`, or `platform:` and the platform's id.
    pub chain: AuditChain,
    /// The number of the chain's last link then.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// The hash of that link.
    pub hash: String,
    /// When it was signed.
    pub signed_at: Timestamp,
    /// The same as a compact JSON Web Signature (`EdDSA`), whose type is `core-audit-checkpoint+jwt` and whose payload has
    /// `chain`, `seq`, `hash` and `iat`, the Unix second of the signature.
    pub jws: String,
}

record! {
    AuditCheckpoint as "audit checkpoint" by id, asked AuditCheckpointQuery;
}

/// Questions about checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditCheckpointQuery {
    /// Newest first; of one platform's chain, if one is named.
    Newest(Option<PlatformId>),
    /// Those of a chain behind this number, in order.
    OfChain(AuditChain, i64),
}

/// Which checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditCheckpointFilter {
    /// Of the chain of this platform.
    pub platform_id: Option<PlatformId>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claims {
    chain: String,
    seq: i64,
    hash: String,
    iat: i64,
}

impl AuditCheckpoint {
    /// Signs where a chain stands now.
    #[must_use]
    pub fn sign(
        key: &Ed25519Private,
        id: AuditCheckpointId,
        platform_id: Option<PlatformId>,
        head: &AuditHead,
        now: Timestamp,
    ) -> Self {
        let mut checkpoint = Self {
            id,
            platform_id,
            chain: head.chain.clone(),
            seq: head.seq,
            hash: head.hash.clone(),
            signed_at: now,
            jws: String::new(),
        };
        // A struct of texts and numbers is always JSON.
        let claims = serde_json::to_vec(&checkpoint.claims()).unwrap_or_default();
        checkpoint.jws = key.signed(TYPE, &key.public().thumbprint(), &claims);
        checkpoint
    }

    fn claims(&self) -> Claims {
        Claims {
            chain: self.chain.as_ref().to_owned(),
            seq: self.seq,
            hash: self.hash.clone(),
            iat: self.signed_at.seconds(),
        }
    }

    /// Tells whether the signature is of this key, and says what the record says.
    #[must_use]
    pub fn is_signed_by(&self, key: &Ed25519Public) -> bool {
        let signed = Unverified::parse(&self.jws)
            .and_then(|token| token.of_type(TYPE)?.payload(key))
            .ok()
            .and_then(|payload| serde_json::from_slice(&payload).ok());
        let platform = AuditChain::of(self.platform_id.as_ref());
        signed == Some(self.claims()) && platform == self.chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

    #[test]
    fn a_checkpoint_is_believed_as_it_was_signed_and_by_its_key_alone() {
        let entropy = SeededEntropy::new(1);
        let (key, other) = (
            Ed25519Private::generate(&entropy),
            Ed25519Private::generate(&entropy),
        );
        let platform = PlatformId::parse("p-1");
        let mut head = AuditHead::empty(AuditChain::of(platform.as_ref()));
        head.seq = 1_000;
        let now = Timestamp::from_seconds(1_800_000_000);
        let id = AuditCheckpointId::generate(now, &entropy);
        let signed = AuditCheckpoint::sign(&key, id, platform, &head, now);
        assert!(signed.is_signed_by(&key.public()) && !signed.is_signed_by(&other.public()));
        let changes: [fn(&mut AuditCheckpoint); 5] = [
            |c| c.seq += 1,
            |c| c.hash.replace_range(..1, "1"),
            |c| c.chain = AuditChain::of(None),
            |c| c.platform_id = PlatformId::parse("p-2"),
            |c| c.signed_at = Timestamp::from_seconds(1_800_000_001),
        ];
        for change in changes {
            let mut changed = signed.clone();
            change(&mut changed);
            assert!(!changed.is_signed_by(&key.public()), "{changed:?}");
        }
    }
}
