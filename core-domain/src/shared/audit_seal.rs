//! Seals. Every audit entry becomes a link of a hash chain, so that changes and removals of entries are detected.
//!
//! The entries of a platform form one chain; the installation's own entries form another. The hash of a link is
//! `SHA-256(previous ‖ "\n" ‖ entry)` in lower-case hexadecimal digits:
//!
//! - `previous` is the hash of the previous link as 64 ASCII digits, or 64 zeros for the first link.
//! - `entry` is the entry as served by the API plus its field `stream` (`changes` or `reads`), as canonical JSON in
//!   UTF-8: the members of every object sorted by name, without white space. It is `null` if the entry could not be
//!   read when it was sealed.
//!
//! All seals of the installation have consecutive positions. Checkpoints of the installation contain the number of
//! chains and entries, and refer to the previous checkpoint. So deleting a whole chain leaves a gap in the positions,
//! and deleting a checkpoint breaks the chain of checkpoints.
//!
//! # Limits
//! Someone who can write every table can remove the last entries of the installation without a trace. These are the
//! entries after its last checkpoint together with their seals, if the heads are set back too, and entries that are not
//! sealed yet. The same holds for earlier entries if the checkpoints after them are removed as well. Copies of signed
//! checkpoints that are kept elsewhere reveal both. Someone who also has the signing key can rewrite everything except
//! those copies.

use serde_json::Value;
use sha2::{Digest, Sha256};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    AuditId, ListVersion, PlatformId, TextValue, Timestamp, canonical_json, hex, record,
};

use super::{AuditEntry, AuditStream};

/// The value used as the previous hash of the first link of a chain.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The name of a chain: `installation`, or `platform:` and the platform's id. A stored name is not validated, so that a
/// damaged record can still be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
#[serde(transparent)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditChain(
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(regex = "installation|platform:[a-z0-9]{1,12}")
    )]
    String,
);

impl AuditChain {
    /// Returns the chain of a platform's entries; without a platform, the chain of the installation's own entries.
    #[must_use]
    pub fn of(platform: Option<&PlatformId>) -> Self {
        Self(platform.map_or_else(
            || "installation".to_owned(),
            |platform| format!("platform:{platform}"),
        ))
    }

    /// Returns the platform of the chain; `None` for any other chain.
    #[must_use]
    pub fn platform_id(&self) -> Option<PlatformId> {
        PlatformId::parse(self.0.strip_prefix("platform:")?)
    }

    /// Returns the name of the feed: the sequence of all seals of the installation, which assigns the positions. It has
    /// no links of its own.
    #[must_use]
    pub fn feed() -> Self {
        Self("feed".to_owned())
    }
}

impl AsRef<str> for AuditChain {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl TextValue for AuditChain {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

/// The seal of an audit entry: a link of its chain. Seals are never changed, and removed only after they are archived.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditSeal {
    /// The id of the sealed entry.
    pub entry_id: AuditId,
    /// The chain that the link belongs to.
    pub chain: AuditChain,
    /// The number of the link in its chain, starting at 1, without gaps.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// The position of the seal in the installation, starting at 1, without gaps. It determines the order of the change
    /// feed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub position: i64,
    /// The list that the entry belongs to.
    pub stream: AuditStream,
    /// The hash of the previous link; [`GENESIS`] in the first one.
    pub previous_hash: String,
    /// The hash of this link.
    pub hash: String,
    /// The time at which the entry was sealed.
    pub sealed_at: Timestamp,
}

record! {
    AuditSeal as "audit seal" by entry_id, asked AuditSealQuery;
}

/// Queries for seals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditSealQuery {
    /// The seals of a chain after this link number, in order.
    OfChain(AuditChain, i64),
    /// The seals of a chain after this position, in order of position.
    OfChainBehind(AuditChain, i64),
    /// The seals of all chains after the first position, up to and including the second, in order of position. To follow the
    /// feed, the second is the recorded end of the installation: later seals can become visible out of order.
    Positions(i64, i64),
    /// The seals of entries with smaller ids than this text, newest entry first.
    NewestBefore(String),
    /// The seals that an archive contains and that may be removed, oldest entry first.
    Archived {
        /// The smallest id that is not removed.
        keys_before: String,
        /// The last position in the archive.
        until: i64,
    },
}

/// The end of a chain. Appending to a chain replaces its head, so that concurrent appends conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditHead {
    /// The name of the chain.
    pub chain: AuditChain,
    /// The number of the last link; 0 for an empty chain.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// The number of links that are changes. It is the total of a list of changes, except for entries that are not
    /// sealed yet.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub changes: i64,
    /// The hash of the last link. For the feed: the hash of its last checkpoint.
    pub hash: String,
    /// The number of the last link at the latest checkpoint; 0 if there is no checkpoint.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub checkpoint_seq: i64,
    /// The time at which the first link after the latest checkpoint was created; `None` if there is no such link.
    pub unchecked_since: Option<Timestamp>,
    /// The number of links that are changes and were removed after they were archived.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub removed_changes: i64,
}

record! {
    AuditHead as "audit chain" by chain, asked AuditHeadQuery;
}

/// Queries for chain heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditHeadQuery {
    /// The head of this chain.
    OfChain(AuditChain),
    /// The heads of all chains except the feed.
    Chains,
    /// The heads with links that have waited for a checkpoint since this time or longer, longest wait first.
    UncheckedSince(Timestamp),
}

impl AuditHead {
    /// Creates the head of an empty chain.
    #[must_use]
    pub fn empty(chain: AuditChain) -> Self {
        Self {
            chain,
            seq: 0,
            changes: 0,
            hash: GENESIS.to_owned(),
            checkpoint_seq: 0,
            unchecked_since: None,
            removed_changes: 0,
        }
    }

    /// Returns the number of changes that were not removed.
    #[must_use]
    pub fn remaining_changes(&self) -> u64 {
        u64::try_from(self.changes - self.removed_changes).unwrap_or_default()
    }

    /// Returns the version of the list of changes.
    #[must_use]
    pub fn list_version(&self) -> ListVersion {
        ListVersion {
            added: u64::try_from(self.changes).unwrap_or_default(),
            removed: u64::try_from(self.removed_changes).unwrap_or_default(),
        }
    }

    /// Appends a link for an entry and returns its seal. `None` stands for an entry that could not be read.
    pub fn append(
        &mut self,
        id: &AuditId,
        entry: Option<&AuditEntry>,
        position: i64,
        now: Timestamp,
    ) -> AuditSeal {
        let hash = link_hash(&self.hash, entry);
        let previous_hash = std::mem::replace(&mut self.hash, hash);
        self.count_link(entry);
        self.unchecked_since.get_or_insert(now);
        AuditSeal {
            entry_id: id.clone(),
            chain: self.chain.clone(),
            seq: self.seq,
            position,
            stream: entry.map_or(AuditStream::default(), |entry| entry.stream),
            previous_hash,
            hash: self.hash.clone(),
            sealed_at: now,
        }
    }

    /// Updates the counters for one more link.
    pub fn count_link(&mut self, entry: Option<&AuditEntry>) {
        self.seq += 1;
        self.changes += i64::from(entry.is_some_and(|entry| entry.stream == AuditStream::Changes));
    }

    /// Records that a checkpoint of the current end of the chain was created.
    pub const fn mark_checkpointed(&mut self) {
        self.checkpoint_seq = self.seq;
        self.unchecked_since = None;
    }
}

/// Returns the hash of a link, computed from the previous hash and the entry.
#[must_use]
pub fn link_hash(previous: &str, entry: Option<&AuditEntry>) -> String {
    hash_of(previous, &entry.map_or(Value::Null, sealed_form))
}

/// Returns the hash of a link, computed from the previous hash and the [sealed form](sealed_form) of the entry.
pub(super) fn hash_of(previous: &str, entry: &Value) -> String {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update("\n");
    hash.update(canonical_json(entry));
    hex(&hash.finalize())
}

/// Returns the JSON of an entry that its link hashes: the entry as served by the API plus its field `stream`.
pub(super) fn sealed_form(entry: &AuditEntry) -> Value {
    // A struct of texts and JSON can always be encoded as JSON.
    let mut shown = serde_json::to_value(entry).unwrap_or(Value::Null);
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("stream".to_owned(), entry.stream.as_str().into());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::JsonText;

    fn entry() -> AuditEntry {
        AuditEntry {
            id: AuditId::parse("a-1").unwrap(),
            stream: AuditStream::Changes,
            platform_id: PlatformId::parse("p-1"),
            actor_id: "olga".to_owned(),
            actor_type: "user".to_owned(),
            action: "platform.updated".to_owned(),
            entity_type: "platform".to_owned(),
            entity_id: "p-1".to_owned(),
            before: None,
            after: serde_json::from_str(r#"{"name": "é", "a": [1.5, 9007199254740993]}"#).unwrap(),
            metadata: JsonText::of(&serde_json::json!({})),
            created_at: Timestamp::from_seconds(1_800_000_000),
        }
    }

    /// The expected hash was computed with other tools, to verify the description above. It is the output of `printf
    /// '%064d\n%s' 0 '<entry>' | sha256sum`.
    #[test]
    fn first_link_is_the_hash_of_zeros_line_feed_and_canonical_entry() {
        assert_eq!(
            canonical_json(&sealed_form(&entry())),
            r#"{"action":"platform.updated","actorId":"olga","actorType":"user","after":{"a":[1.5,9007199254740993],"name":"é"},"before":null,"createdAt":"2027-01-15T08:00:00.000Z","entityId":"p-1","entityType":"platform","id":"a-1","metadata":{},"platformId":"p-1","stream":"changes"}"#
        );
        let mut head = AuditHead::empty(AuditChain::of(entry().platform_id.as_ref()));
        let now = Timestamp::from_seconds(1_800_000_001);
        let first = head.append(&entry().id, Some(&entry()), 7, now);
        assert_eq!(first.previous_hash, GENESIS);
        assert_eq!(
            first.hash,
            "6a4101f0fcd1d2143e3e84cd04189411f664b0adec24f8873c30e637b3e2b80a"
        );
        assert_eq!((head.seq, head.unchecked_since), (1, Some(now)));
        let gone = head.append(&entry().id, None, 8, now);
        assert_eq!((gone.seq, gone.previous_hash), (2, first.hash));
    }
}
