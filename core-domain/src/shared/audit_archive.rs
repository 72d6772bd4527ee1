//! Archives of the audit log. The entries of a month are exported with their seals before they are removed.
//!
//! An archive contains the links after the last position of the previous archive, up to a position at which every entry
//! of the month is sealed. It can contain some entries of the next month, which were sealed before an entry of the month.
//! Its record is signed. Verifications start after the newest archive.

use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{Ed25519Private, Ed25519Public, Month, Timestamp, UnverifiedJws, record};

/// The `typ` in the header of the signature.
const TYPE: &str = "core-audit-archive+jwt";

/// Number of digits of the digest in the key of the blob.
const DIGEST_DIGITS: usize = 16;

/// The record of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditArchive {
    /// The month, such as `2026-11`.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(regex = "20[0-9]{2}-(0[1-9]|1[0-2])")
    )]
    pub month: String,
    /// The smallest text that sorts after all ids of the month. Records with smaller ids may be removed.
    pub keys_before: String,
    /// The position before the first link of the archive: the last position of the previous archive, or 0.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub after: i64,
    /// The position of the last link of the archive.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub position: i64,
    /// The position of the last checkpoint of the feed that may be removed; 0 if there is none.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub feed_position: i64,
    /// The hash of that checkpoint; [`GENESIS`](super::GENESIS) if there is none.
    pub feed_hash: String,
    /// SHA-256 of the content of the archive before its last line, in hexadecimal digits.
    pub digest: String,
    /// The digest of the previous archive; [`GENESIS`](super::GENESIS) in the first one.
    pub previous: String,
    /// The time at which the archive was signed.
    pub archived_at: Timestamp,
    /// The record as a compact JSON Web Signature (`EdDSA`) of the type `core-audit-archive+jwt`; see
    /// [`ArchiveStatement`].
    pub jws: String,
    /// The time at which the last record of the archive was removed; `None` if removing them is not complete.
    pub removed_at: Option<Timestamp>,
}

record! {
    AuditArchive as "audit archive" by month, asked AuditArchiveQuery;
}

/// Queries for archives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditArchiveQuery {
    /// All archives, newest month first.
    NewestFirst,
    /// All archives, oldest month first.
    OldestFirst,
}

/// The signed statement about an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveStatement {
    /// The month, such as `2026-11`.
    pub month: String,
    /// The smallest text that sorts after all ids of the month.
    pub keys_before: String,
    /// The position before the first link.
    pub after: i64,
    /// The position of the last link.
    pub position: i64,
    /// The position of the last checkpoint of the feed that may be removed.
    pub feed_position: i64,
    /// The hash of that checkpoint.
    pub feed_hash: String,
    /// SHA-256 of the content before the last line.
    pub digest: String,
    /// The digest of the previous archive.
    pub previous: String,
    /// The time of signing in Unix seconds.
    pub iat: i64,
}

impl ArchiveStatement {
    /// Returns the statement of a signature; `None` if the key did not sign it.
    #[must_use]
    pub fn read(jws: &str, key: &Ed25519Public) -> Option<Self> {
        let token = UnverifiedJws::parse(jws).ok()?;
        let payload = token.of_type(TYPE).ok()?.payload(key).ok()?;
        serde_json::from_slice(&payload).ok()
    }
}

impl AuditArchive {
    /// Returns the archive with its signature.
    #[must_use]
    pub fn sign(mut self, key: &Ed25519Private) -> Self {
        // A struct of texts and numbers can always be encoded as JSON.
        let statement = serde_json::to_vec(&self.statement()).unwrap_or_default();
        self.jws = key.sign(TYPE, &key.public().thumbprint(), &statement);
        self
    }

    /// Returns whether the signature was made with this key and matches the record.
    #[must_use]
    pub fn is_signed_by(&self, key: &Ed25519Public) -> bool {
        ArchiveStatement::read(&self.jws, key) == Some(self.statement())
    }

    /// Returns the key of the blob with the content. It depends on the content, so that another content never replaces
    /// it.
    #[must_use]
    pub fn blob_key(&self) -> String {
        let digest: String = self.digest.chars().take(DIGEST_DIGITS).collect();
        format!("audit-archive-{}-{digest}", self.month)
    }

    /// Returns the month; `None` if its text is damaged.
    #[must_use]
    pub fn month(&self) -> Option<Month> {
        Month::parse(&self.month)
    }

    /// Returns the number of links in the archive.
    #[must_use]
    pub fn links(&self) -> u64 {
        u64::try_from(self.position.saturating_sub(self.after)).unwrap_or_default()
    }

    fn statement(&self) -> ArchiveStatement {
        ArchiveStatement {
            month: self.month.clone(),
            keys_before: self.keys_before.clone(),
            after: self.after,
            position: self.position,
            feed_position: self.feed_position,
            feed_hash: self.feed_hash.clone(),
            digest: self.digest.clone(),
            previous: self.previous.clone(),
            iat: self.archived_at.seconds(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::GENESIS;
    use super::*;
    use crate::port::is_blob_key;
    use crate::testing::SeededEntropy;

    #[test]
    fn an_archive_is_valid_only_unchanged_and_with_its_own_key() {
        let entropy = SeededEntropy::new(1);
        let [key, other] = [(); 2].map(|()| Ed25519Private::generate(&entropy));
        let month = Month::parse("2026-11").unwrap();
        let signed = AuditArchive {
            month: month.to_string(),
            keys_before: month.next().first_key(),
            after: 10,
            position: 20,
            feed_position: 18,
            feed_hash: GENESIS.replace('0', "a"),
            digest: GENESIS.replace('0', "b"),
            previous: GENESIS.to_owned(),
            archived_at: Timestamp::from_seconds(1_800_000_000),
            jws: String::new(),
            removed_at: None,
        }
        .sign(&key);
        assert!(signed.is_signed_by(&key.public()) && !signed.is_signed_by(&other.public()));
        assert_eq!(signed.blob_key(), "audit-archive-2026-11-bbbbbbbbbbbbbbbb");
        assert!(is_blob_key(&signed.blob_key()));
        let removed = AuditArchive {
            removed_at: Some(signed.archived_at),
            ..signed.clone()
        };
        assert!(removed.is_signed_by(&key.public()));
        let changes: [fn(&mut AuditArchive); 9] = [
            |a| a.month = "2026-10".to_owned(),
            |a| a.keys_before.push('0'),
            |a| a.after += 1,
            |a| a.position += 1,
            |a| a.feed_position += 1,
            |a| a.feed_hash.clear(),
            |a| a.digest.clear(),
            |a| a.previous.clear(),
            |a| a.archived_at = Timestamp::from_seconds(1_800_000_001),
        ];
        for change in changes {
            let mut changed = signed.clone();
            change(&mut changed);
            assert!(!changed.is_signed_by(&key.public()), "{changed:?}");
        }
    }
}
