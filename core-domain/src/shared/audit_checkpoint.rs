//! Checkpoints: signed statements about the end of an audit chain at a point in time. Later states of the chain are
//! verified against them.
//!
//! The checkpoints of the feed are about the whole installation and form a chain of their own. Each contains the hash
//! of the previous one, the number of chains and the number of sealed entries. This reveals the deletion of a whole
//! chain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    AuditCheckpointId, Ed25519Private, Ed25519Public, PlatformId, Timestamp, UnverifiedJws,
    canonical_json, hex, record,
};

use super::{AuditChain, AuditHead};

/// Maximum number of entries of a chain between two checkpoints.
pub const MAX_UNCHECKED_ENTRIES: i64 = 1_000;

/// Maximum time until an entry is covered by a checkpoint.
pub const MAX_UNCHECKED_TIME: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// The `typ` in the header of a checkpoint's signature.
const TYPE: &str = "core-audit-checkpoint+jwt";

/// A signed statement about the end of an audit chain. Checkpoints are never changed, and removed only after they are archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditCheckpoint {
    /// Unique id of the checkpoint.
    pub id: AuditCheckpointId,
    /// The platform whose chain the checkpoint is about. `null` for the chain of the installation's own entries and for
    /// the feed.
    pub platform_id: Option<PlatformId>,
    /// The chain: `installation`, or `platform:` and the platform's id; `feed` for the installation as a whole.
    pub chain: AuditChain,
    /// The number of the last link of the chain. For the feed: the highest position in the installation.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// The hash of that link. For the feed: `SHA-256(previous ‖ "\n" ‖ statement)`. `previous` is the hash of the
    /// previous checkpoint of the feed, or 64 zeros for the first. `statement` is the canonical JSON of `chains`,
    /// `entries`, `iat` and `seq`.
    pub hash: String,
    /// The time at which the checkpoint was signed.
    pub signed_at: Timestamp,
    /// The checkpoint as a compact JSON Web Signature (`EdDSA`) of the type `core-audit-checkpoint+jwt`. Its payload
    /// contains `chain`, `seq`, `hash` and `iat`, the time of signing in Unix seconds. For the last archived link of a
    /// chain it also contains `archivedUntil`, the position up to which the log is archived. For the feed it also contains
    /// `previous`, `chains` (the number of chains) and `entries` (the number of sealed entries).
    pub jws: String,
    /// The position up to which the log is archived, if this is the last archived link of the chain. The signature contains
    /// it. `None` for other checkpoints.
    #[serde(skip)]
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "proptest::option::of(count())")
    )]
    pub archived_until: Option<i64>,
}

record! {
    AuditCheckpoint as "audit checkpoint" by id, asked AuditCheckpointQuery;
}

/// Queries for checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditCheckpointQuery {
    /// All checkpoints, newest first; with a platform, only those of its chain.
    Newest(Option<PlatformId>),
    /// The checkpoints of a chain after this link number, in order.
    OfChain(AuditChain, i64),
    /// The checkpoints of a chain with smaller ids than this text, newest first.
    NewestOfChainBefore(AuditChain, String),
    /// The checkpoints with ids after the first and before the second text, oldest first.
    Between(String, String),
}

/// Filters for a list of checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditCheckpointFilter {
    /// Returns only checkpoints of the chain of this platform.
    pub platform_id: Option<PlatformId>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claims {
    chain: String,
    seq: i64,
    hash: String,
    iat: i64,
    #[serde(
        default,
        rename = "archivedUntil",
        skip_serializing_if = "Option::is_none"
    )]
    archived_until: Option<i64>,
    #[serde(flatten)]
    installation: Option<InstallationStatement>,
}

/// The part of a feed checkpoint that describes the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallationStatement {
    /// The hash of the previous checkpoint of the feed; [`GENESIS`](super::GENESIS) in the first one.
    pub previous: String,
    /// The number of chains.
    pub chains: u64,
    /// The number of sealed entries in all chains.
    pub entries: u64,
}

impl InstallationStatement {
    /// Returns the hash of a feed checkpoint with this statement.
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
    /// Creates a signed checkpoint of the current end of a chain.
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
            archived_until: None,
        };
        checkpoint.with_signature(key, None)
    }

    /// Returns this checkpoint as that of the last archived link of its chain. The log is archived up to this position.
    #[must_use]
    pub fn sign_archived(mut self, key: &Ed25519Private, position: i64) -> Self {
        self.archived_until = Some(position);
        self.with_signature(key, None)
    }

    /// Creates a signed checkpoint of the feed at a position.
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
            archived_until: None,
        };
        checkpoint.with_signature(key, Some(statement))
    }

    fn with_signature(
        mut self,
        key: &Ed25519Private,
        statement: Option<InstallationStatement>,
    ) -> Self {
        // A struct of texts and numbers can always be encoded as JSON.
        let claims = serde_json::to_vec(&self.claims(statement)).unwrap_or_default();
        self.jws = key.sign(TYPE, &key.public().thumbprint(), &claims);
        self
    }

    fn claims(&self, installation: Option<InstallationStatement>) -> Claims {
        Claims {
            chain: self.chain.as_ref().to_owned(),
            seq: self.seq,
            hash: self.hash.clone(),
            iat: self.signed_at.seconds(),
            archived_until: self.archived_until,
            installation,
        }
    }

    /// Returns whether the signature was made with this key and matches the record. Always `false` for a checkpoint of
    /// the feed.
    #[must_use]
    pub fn is_signed_by(&self, key: &Ed25519Public) -> bool {
        let platform = AuditChain::of(self.platform_id.as_ref());
        self.signed_claims(key) == Some(self.claims(None)) && platform == self.chain
    }

    /// Returns the statement of a feed checkpoint. `None` if the signature was not made with this key or does not match
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

    /// Returns the signed payload if the signature was made with this key.
    fn signed_claims(&self, key: &Ed25519Public) -> Option<Claims> {
        signed_claims(&self.jws, key)
    }
}

fn signed_claims(jws: &str, key: &Ed25519Public) -> Option<Claims> {
    let token = UnverifiedJws::parse(jws).ok()?;
    let payload = token.of_type(TYPE).ok()?.payload(key).ok()?;
    serde_json::from_slice(&payload).ok()
}

/// Returns whether a checkpoint with this signature states this end of a chain.
pub(super) fn states_end(
    jws: &str,
    key: &Ed25519Public,
    chain: &str,
    seq: i64,
    hash: &str,
) -> bool {
    signed_claims(jws, key)
        .is_some_and(|claims| claims.chain == chain && claims.seq == seq && claims.hash == hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

    #[test]
    fn checkpoint_is_valid_only_unchanged_and_with_its_own_key() {
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
        let archived = signed.clone().sign_archived(&key, 2_000);
        assert!(archived.is_signed_by(&key.public()));
        let untagged = AuditCheckpoint {
            archived_until: None,
            ..archived
        };
        assert!(!untagged.is_signed_by(&key.public()));
        let changes: [fn(&mut AuditCheckpoint); 6] = [
            |c| c.archived_until = Some(2_000),
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
    fn feed_checkpoint_is_valid_only_unchanged_and_not_as_a_chain_checkpoint() {
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
