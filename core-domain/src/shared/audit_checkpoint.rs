//! Checkpoints: where a chain of the audit stood at an instant, signed, so that what comes later can be held against it.
//!
//! The checkpoints of the feed speak of the whole installation. They are a chain of their own: each names the hash of the one
//! before, the number of chains and the number of sealed entries, so that a chain which was deleted whole is missed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    AuditCheckpointId, Ed25519Private, Ed25519Public, PlatformId, Timestamp, Unverified,
    canonical_json, hex, record,
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
    /// The platform whose chain it is; `null` for that of the installation's own entries and for the feed.
    pub platform_id: Option<PlatformId>,
    /// The chain: `installation`, or `platform:` and the platform's id; `feed` for the installation as a whole.
    pub chain: AuditChain,
    /// The number of the chain's last link then; the highest position in the installation for the feed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// The hash of that link. For the feed: `SHA-256(previous ‖ "\n" ‖ statement)`, where `previous` is the hash of the feed's
    /// checkpoint before (64 zeros before the first) and `statement` the canonical JSON of `chains`, `entries`, `iat` and `seq`.
    pub hash: String,
    /// When it was signed.
    pub signed_at: Timestamp,
    /// The same as a compact JSON Web Signature (`EdDSA`), whose type is `core-audit-checkpoint+jwt` and whose payload has
    /// `chain`, `seq`, `hash` and `iat`, the Unix second of the signature. That of the feed also has `previous`, `chains` (the
    /// number of chains) and `entries` (the number of sealed entries).
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
    #[serde(flatten)]
    installation: Option<InstallationStatement>,
}

/// What a checkpoint of the feed says of the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallationStatement {
    /// The hash of the feed's checkpoint before; [`GENESIS`](super::GENESIS) in the first.
    pub previous: String,
    /// The number of chains.
    pub chains: u64,
    /// The number of sealed entries in all chains.
    pub entries: u64,
}

impl InstallationStatement {
    /// Returns the hash of a checkpoint that says this.
    fn hash(&self, seq: i64, now: Timestamp) -> String {
        let statement = serde_json::json!({
            "chains": self.chains, "entries": self.entries, "iat": now.seconds(), "seq": seq,
        });
        let mut hash = Sha256::new();
        hash.update(&self.previous);
        hash.update("\n");
        hash.update(canonical_json(&statement));
        hex(&hash.finalize())
    }
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
        let checkpoint = Self {
            id,
            platform_id,
            chain: head.chain.clone(),
            seq: head.seq,
            hash: head.hash.clone(),
            signed_at: now,
            jws: String::new(),
        };
        checkpoint.signed(key, None)
    }

    /// Signs a statement about the installation at a position.
    #[must_use]
    pub fn sign_installation(
        key: &Ed25519Private,
        id: AuditCheckpointId,
        position: i64,
        statement: InstallationStatement,
        now: Timestamp,
    ) -> Self {
        let checkpoint = Self {
            id,
            platform_id: None,
            chain: AuditChain::feed(),
            seq: position,
            hash: statement.hash(position, now),
            signed_at: now,
            jws: String::new(),
        };
        checkpoint.signed(key, Some(statement))
    }

    fn signed(mut self, key: &Ed25519Private, statement: Option<InstallationStatement>) -> Self {
        // A struct of texts and numbers is always JSON.
        let claims = serde_json::to_vec(&self.claims(statement)).unwrap_or_default();
        self.jws = key.signed(TYPE, &key.public().thumbprint(), &claims);
        self
    }

    fn claims(&self, installation: Option<InstallationStatement>) -> Claims {
        Claims {
            chain: self.chain.as_ref().to_owned(),
            seq: self.seq,
            hash: self.hash.clone(),
            iat: self.signed_at.seconds(),
            installation,
        }
    }

    /// Tells whether the signature is of this key, and says what the record says.
    #[must_use]
    pub fn is_signed_by(&self, key: &Ed25519Public) -> bool {
        let platform = AuditChain::of(self.platform_id.as_ref());
        self.signed_claims(key) == Some(self.claims(None)) && platform == self.chain
    }

    /// Returns what a checkpoint of the feed states. `None` if the signature is not of this key, or says something else than
    /// the record.
    #[must_use]
    pub fn installation(&self, key: &Ed25519Public) -> Option<InstallationStatement> {
        let claims = self.signed_claims(key)?;
        let statement = claims.installation.clone()?;
        let is_consistent = claims == self.claims(Some(statement.clone()))
            && self.hash == statement.hash(self.seq, self.signed_at)
            && self.platform_id.is_none()
            && self.chain == AuditChain::feed();
        is_consistent.then_some(statement)
    }

    /// Returns the signed payload, if the signature is of this key.
    fn signed_claims(&self, key: &Ed25519Public) -> Option<Claims> {
        let token = Unverified::parse(&self.jws).ok()?;
        let payload = token.of_type(TYPE).ok()?.payload(key).ok()?;
        serde_json::from_slice(&payload).ok()
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

    #[test]
    fn a_checkpoint_of_the_installation_is_believed_as_it_was_signed_and_is_none_of_a_chain() {
        let entropy = SeededEntropy::new(1);
        let (key, other) = (
            Ed25519Private::generate(&entropy),
            Ed25519Private::generate(&entropy),
        );
        let now = Timestamp::from_seconds(1_800_000_000);
        let id = AuditCheckpointId::generate(now, &entropy);
        let statement = InstallationStatement {
            previous: super::super::GENESIS.to_owned(),
            chains: 3,
            entries: 1_000,
        };
        let signed = AuditCheckpoint::sign_installation(&key, id, 1_000, statement.clone(), now);
        assert_eq!(signed.installation(&key.public()), Some(statement));
        assert_eq!(signed.installation(&other.public()), None);
        assert!(!signed.is_signed_by(&key.public()));
        let changes: [fn(&mut AuditCheckpoint); 5] = [
            |c| c.seq += 1,
            |c| c.hash.replace_range(..1, "x"),
            |c| c.chain = AuditChain::of(None),
            |c| c.platform_id = PlatformId::parse("p-2"),
            |c| c.signed_at = Timestamp::from_seconds(1_800_000_001),
        ];
        for change in changes {
            let mut changed = signed.clone();
            change(&mut changed);
            assert_eq!(changed.installation(&key.public()), None, "{changed:?}");
        }
    }
}
