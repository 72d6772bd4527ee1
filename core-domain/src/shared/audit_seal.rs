//! Seals: every audit entry becomes a link of a hash chain, so that nobody changes or removes one unnoticed.
//!
//! A platform's entries are one chain, those of the installation itself another. The hash of a link is
//! `SHA-256(previous ‖ "\n" ‖ entry)` in lower-case hexadecimal: `previous` is the hash of the link before as its 64 ASCII
//! digits (64 zeros before the first), `entry` the entry as the interface shows it, with its field `stream` (`changes`,
//! `reads`) besides, as canonical JSON in UTF-8: the fields of every object sorted by name, no white space, and `null` in the
//! place of an entry that could not be read when it was sealed.
//!
//! The seals of all chains have positions without holes in the installation, and checkpoints of the installation count chains and
//! entries, each naming the one before. So a chain that was deleted whole leaves a hole, and a deleted checkpoint a gap.
//!
//! # Limits
//! Someone who can write every table can remove the last entries of the installation without a trace: the entries after its last
//! checkpoint with their seals, if the heads are set back too, and entries that are not sealed yet. The same holds for earlier
//! entries if the checkpoints after them are removed as well. Copies of signed checkpoints that are kept elsewhere reveal both.
//! Someone who also has the signing key can rewrite everything but those copies.

use serde_json::Value;
use sha2::{Digest, Sha256};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{AuditId, PlatformId, TextValue, Timestamp, canonical_json, hex, record};

use super::{AuditEntry, AuditStream};

/// What stands in the place of the hash before the first link of a chain.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The name of a chain: `installation`, or `platform:` and the platform's id. A name read from a store is any text, so that
/// a damaged one can be looked at.
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
    /// The chain of a platform's entries; without a platform, that of the installation's own.
    #[must_use]
    pub fn of(platform: Option<&PlatformId>) -> Self {
        Self(platform.map_or_else(
            || "installation".to_owned(),
            |platform| format!("platform:{platform}"),
        ))
    }

    /// The platform whose chain it is, if it is one's.
    #[must_use]
    pub fn platform_id(&self) -> Option<PlatformId> {
        PlatformId::parse(self.0.strip_prefix("platform:")?)
    }

    /// All seals of the installation, one after the other: no chain of its own, but what gives them their positions.
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

/// The seal of an audit entry: a link of its chain. Never changed, never removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditSeal {
    /// The entry.
    pub entry_id: AuditId,
    /// The chain it is a link of.
    pub chain: AuditChain,
    /// Its number in the chain: 1, 2, 3 ..
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// Its number in the installation: 1, 2, 3 .. What the change feed is ordered by.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub position: i64,
    /// The list the entry belongs to.
    pub stream: AuditStream,
    /// The hash of the link before; [`GENESIS`] in the first.
    pub previous_hash: String,
    /// The hash of this link.
    pub hash: String,
    /// When it was sealed.
    pub sealed_at: Timestamp,
}

record! {
    AuditSeal as "audit seal" by entry_id, asked AuditSealQuery;
}

/// Questions about seals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditSealQuery {
    /// Those of a chain behind this number, in order.
    OfChain(AuditChain, i64),
    /// The seals after the first position, up to and with the second, in order of position.
    Positions(i64, i64),
    /// Those behind this position, in order; of one chain, if one is named.
    Feed(Option<AuditChain>, i64),
}

/// Where a chain ends. Whoever appends to the chain replaces its head, so that no two do it at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditHead {
    /// The chain.
    pub chain: AuditChain,
    /// The number of its last link; 0 when it has none.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// How many of its links are changes: what a list of them has in all, but for those that wait to be sealed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub changes: i64,
    /// The hash of its last link; for the feed, that of its last checkpoint.
    pub hash: String,
    /// The number its last checkpoint was made at; 0 when it has none.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub checkpoint_seq: i64,
    /// When the first link behind the last checkpoint was made; `None` when there is none.
    pub unchecked_since: Option<Timestamp>,
}

record! {
    AuditHead as "audit chain" by chain, asked AuditHeadQuery;
}

/// Questions about heads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditHeadQuery {
    /// That of this chain.
    OfChain(AuditChain),
    /// The heads of all chains, without that of the feed.
    Chains,
    /// Those with links that have waited for a checkpoint since this instant or longer, the longest first.
    UncheckedSince(Timestamp),
}

impl AuditHead {
    /// That of a chain without a link.
    #[must_use]
    pub fn empty(chain: AuditChain) -> Self {
        Self {
            chain,
            seq: 0,
            changes: 0,
            hash: GENESIS.to_owned(),
            checkpoint_seq: 0,
            unchecked_since: None,
        }
    }

    /// Appends an entry, and answers its seal. `None` is an entry that is gone.
    pub fn append(
        &mut self,
        id: &AuditId,
        entry: Option<&AuditEntry>,
        position: i64,
        now: Timestamp,
    ) -> AuditSeal {
        let hash = link_hash(&self.hash, entry);
        let previous_hash = std::mem::replace(&mut self.hash, hash);
        self.grow(entry);
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

    /// Counts a link.
    pub fn grow(&mut self, entry: Option<&AuditEntry>) {
        self.seq += 1;
        self.changes += i64::from(entry.is_some_and(|entry| entry.stream == AuditStream::Changes));
    }

    /// Notes that a checkpoint was made where the chain stands.
    pub const fn checked(&mut self) {
        self.checkpoint_seq = self.seq;
        self.unchecked_since = None;
    }
}

/// The hash of a link: of the hash before and the entry.
#[must_use]
pub fn link_hash(previous: &str, entry: Option<&AuditEntry>) -> String {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update("\n");
    hash.update(entry.map_or_else(|| "null".to_owned(), canonical));
    hex(&hash.finalize())
}

fn canonical(entry: &AuditEntry) -> String {
    // A struct of texts and JSON is always JSON.
    let mut shown = serde_json::to_value(entry).unwrap_or(Value::Null);
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("stream".to_owned(), entry.stream.as_str().into());
    }
    canonical_json(&shown)
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

    /// Made with other tools, so that the description above is what others need: the bytes of
    /// `printf '%064d\n%s' 0 '<entry>' | sha256sum`.
    #[test]
    fn the_first_link_is_the_hash_of_zeros_a_line_feed_and_the_canonical_entry() {
        assert_eq!(
            canonical(&entry()),
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
