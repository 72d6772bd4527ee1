//! The content of an archive of the audit log: JSON lines, which can be verified without the database.
//!
//! - `{"seal": .., "entry": ..}` is a link, in the order of the positions. `entry` is the text that the link hashes.
//! - `{"checkpoint": ..}` is a signed checkpoint. Checkpoints follow the links. The last one of each chain is about the
//!   link at which a verification of the remaining log starts.
//! - `{"archive": ".."}` is the last line: the signed statement about the archive.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::audit_checkpoint::states_end;
use super::audit_seal::{hash_of, sealed_form};
use super::{ArchiveStatement, AuditArchive, AuditCheckpoint, AuditEntry, AuditSeal, GENESIS};
use crate::kernel::{Ed25519Public, Timestamp, hex};

/// Why an archive, or the part of the log for an archive, is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveFault {
    /// A line is not one of an archive.
    #[error("line {0} is not a line of an archive")]
    Malformed(u64),
    /// A link is missing or occurs twice.
    #[error("the link at position {expected} is missing or in the wrong place")]
    PositionMissing {
        /// The position that was expected.
        expected: i64,
    },
    /// A link does not follow the previous link of its chain.
    #[error("the link at position {0} does not follow the previous link of its chain")]
    ChainBroken(i64),
    /// An entry is missing, or was changed after it was sealed.
    #[error("the entry at position {0} is missing or was changed after it was sealed")]
    EntryChanged(i64),
    /// A checkpoint has no valid signature, or contradicts the links.
    #[error("the checkpoint of {chain} at {seq} has no valid signature or contradicts its chain")]
    CheckpointChanged {
        /// The name of the chain.
        chain: String,
        /// The number of the link.
        seq: i64,
    },
    /// The last line has no statement that this key signed.
    #[error("the last line has no statement that was signed with this key")]
    NotSigned,
    /// The content differs from the signed content.
    #[error("the content differs from the signed content")]
    ContentChanged,
}

/// The seal of a link.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SealLine {
    chain: String,
    seq: i64,
    position: i64,
    previous_hash: String,
    hash: String,
    sealed_at: Timestamp,
}

#[derive(Serialize)]
struct LinkOut<'a> {
    seal: &'a SealLine,
    entry: &'a Value,
}

#[derive(Serialize)]
struct CheckpointOut<'a> {
    checkpoint: &'a AuditCheckpoint,
}

#[derive(Serialize)]
struct StatementOut<'a> {
    archive: &'a str,
}

#[derive(Deserialize)]
struct Line {
    seal: Option<SealLine>,
    entry: Option<Value>,
    checkpoint: Option<CheckpointIn>,
    archive: Option<String>,
}

#[derive(Deserialize)]
struct CheckpointIn {
    chain: String,
    seq: i64,
    hash: String,
    jws: String,
}

/// The number and the hash of a link of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Link {
    seq: i64,
    hash: String,
}

/// The links that were checked so far.
#[derive(Debug)]
struct Links {
    /// The position of the last link; `None` before the first one.
    position: Option<i64>,
    /// The last link of each chain.
    ends: BTreeMap<String, Link>,
}

impl Links {
    /// Checks the next link. Returns whether it is the first one of its chain.
    fn check(&mut self, seal: &SealLine, entry: &Value) -> Result<bool, ArchiveFault> {
        if let Some(position) = self.position
            && seal.position != position + 1
        {
            let expected = position + 1;
            return Err(ArchiveFault::PositionMissing { expected });
        }
        let end = self.ends.get(&seal.chain);
        let follows = match end {
            Some(end) => seal.seq == end.seq + 1 && seal.previous_hash == end.hash,
            None => seal.seq > 1 || (seal.seq == 1 && seal.previous_hash == GENESIS),
        };
        if !follows {
            return Err(ArchiveFault::ChainBroken(seal.position));
        }
        if hash_of(&seal.previous_hash, entry) != seal.hash {
            return Err(ArchiveFault::EntryChanged(seal.position));
        }
        self.position = Some(seal.position);
        let (seq, hash) = (seal.seq, seal.hash.clone());
        let before = self.ends.insert(seal.chain.clone(), Link { seq, hash });
        Ok(before.is_none())
    }
}

/// Computes the digest of an archive's content: SHA-256 of all lines before the last one.
#[derive(Clone, Debug, Default)]
pub struct ContentDigest {
    hash: Sha256,
    last: Vec<u8>,
}

impl ContentDigest {
    /// Adds the next line, with its end.
    pub fn add(&mut self, line: &[u8]) {
        self.hash.update(&self.last);
        self.last.clear();
        self.last.extend_from_slice(line);
    }

    /// Returns the digest in hexadecimal digits.
    #[must_use]
    pub fn finish(self) -> String {
        hex(&self.hash.finalize())
    }
}

/// Writes the lines of an archive, and checks the links.
#[derive(Debug)]
pub struct ArchiveWriter {
    links: Links,
    hash: Sha256,
}

impl ArchiveWriter {
    /// Creates a writer of the links after this position.
    #[must_use]
    pub fn after(position: i64) -> Self {
        Self {
            links: Links {
                position: Some(position),
                ends: BTreeMap::new(),
            },
            hash: Sha256::new(),
        }
    }

    /// Returns the line of the next link, and whether it is the first link of its chain in the archive.
    ///
    /// # Errors
    /// [`ArchiveFault`] if the link or its entry is not valid.
    pub fn link(
        &mut self,
        seal: &AuditSeal,
        entry: &AuditEntry,
    ) -> Result<(Vec<u8>, bool), ArchiveFault> {
        let entry = sealed_form(entry);
        let seal = SealLine {
            chain: seal.chain.as_ref().to_owned(),
            seq: seal.seq,
            position: seal.position,
            previous_hash: seal.previous_hash.clone(),
            hash: seal.hash.clone(),
            sealed_at: seal.sealed_at,
        };
        let is_first = self.links.check(&seal, &entry)?;
        let line = self.line(&LinkOut {
            seal: &seal,
            entry: &entry,
        });
        Ok((line, is_first))
    }

    /// Returns whether the last link of the chain in the archive is this one; `None` if the archive has no link of the
    /// chain.
    #[must_use]
    pub fn ends_with(&self, chain: &str, seq: i64, hash: &str) -> Option<bool> {
        let end = self.links.ends.get(chain)?;
        Some(end.seq == seq && end.hash == hash)
    }

    /// Returns the line of a checkpoint.
    pub fn checkpoint(&mut self, checkpoint: &AuditCheckpoint) -> Vec<u8> {
        self.line(&CheckpointOut { checkpoint })
    }

    /// Returns the digest of the lines so far.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Returns the last line.
    #[must_use]
    pub fn statement(archive: &AuditArchive) -> Vec<u8> {
        line_of(&StatementOut {
            archive: &archive.jws,
        })
    }

    fn line(&mut self, value: &impl Serialize) -> Vec<u8> {
        let line = line_of(value);
        self.hash.update(&line);
        line
    }
}

fn line_of(value: &impl Serialize) -> Vec<u8> {
    // Structs of texts, numbers and JSON can always be encoded as JSON.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Verifies the lines of an archive with the public key of the installation.
#[derive(Debug)]
pub struct ArchiveVerifier<'k> {
    key: &'k Ed25519Public,
    links: Links,
    /// The position of the first link.
    first: Option<i64>,
    digest: ContentDigest,
    lines: u64,
    statement: Option<ArchiveStatement>,
}

impl<'k> ArchiveVerifier<'k> {
    /// Creates a verifier.
    #[must_use]
    pub fn new(key: &'k Ed25519Public) -> Self {
        Self {
            key,
            links: Links {
                position: None,
                ends: BTreeMap::new(),
            },
            first: None,
            digest: ContentDigest::default(),
            lines: 0,
            statement: None,
        }
    }

    /// Checks the next line, with its end.
    ///
    /// # Errors
    /// The first [`ArchiveFault`] of the line.
    pub fn check(&mut self, line: &[u8]) -> Result<(), ArchiveFault> {
        self.digest.add(line);
        self.lines += 1;
        let malformed = ArchiveFault::Malformed(self.lines);
        // Nothing follows the statement.
        if self.statement.is_some() {
            return Err(malformed);
        }
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return Err(malformed);
        };
        match line {
            Line {
                seal: Some(seal),
                entry: Some(entry),
                ..
            } => {
                self.first.get_or_insert(seal.position);
                self.links.check(&seal, &entry).map(drop)
            }
            Line {
                checkpoint: Some(checkpoint),
                ..
            } => self.check_checkpoint(checkpoint),
            Line {
                archive: Some(jws), ..
            } => {
                let statement = ArchiveStatement::read(&jws, self.key);
                self.statement = Some(statement.ok_or(ArchiveFault::NotSigned)?);
                Ok(())
            }
            _ => Err(malformed),
        }
    }

    fn check_checkpoint(&self, checkpoint: CheckpointIn) -> Result<(), ArchiveFault> {
        let CheckpointIn {
            chain,
            seq,
            hash,
            jws,
        } = checkpoint;
        let end = self.links.ends.get(&chain).filter(|end| end.seq == seq);
        let agrees = end.is_none_or(|end| end.hash == hash);
        if agrees && states_end(&jws, self.key, &chain, seq, &hash) {
            return Ok(());
        }
        Err(ArchiveFault::CheckpointChanged { chain, seq })
    }

    /// Compares the content with the signed statement, and returns the statement.
    ///
    /// # Errors
    /// - [`ArchiveFault::NotSigned`] if the last line has no signed statement.
    /// - [`ArchiveFault::PositionMissing`] if links are missing at the start or the end.
    /// - [`ArchiveFault::ContentChanged`] if the content differs from the signed content.
    pub fn finish(self) -> Result<ArchiveStatement, ArchiveFault> {
        let statement = self.statement.ok_or(ArchiveFault::NotSigned)?;
        let expected = statement.after + 1;
        if self.first.is_some_and(|first| first != expected) {
            return Err(ArchiveFault::PositionMissing { expected });
        }
        let last = self.links.position.unwrap_or(statement.after);
        if last != statement.position {
            let expected = last + 1;
            return Err(ArchiveFault::PositionMissing { expected });
        }
        if self.digest.finish() != statement.digest {
            return Err(ArchiveFault::ContentChanged);
        }
        Ok(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{AuditCheckpointId, AuditId, Ed25519Private, JsonText, Month, PlatformId};
    use crate::shared::{AuditChain, AuditHead, AuditStream};
    use crate::testing::SeededEntropy;

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn entry(n: usize) -> AuditEntry {
        AuditEntry {
            id: AuditId::parse(&format!("entry-{n}")).unwrap(),
            stream: AuditStream::Changes,
            platform_id: PlatformId::parse(&format!("p-{}", n % 2)),
            actor_id: "ada".to_owned(),
            actor_type: "user".to_owned(),
            action: "thing.made".to_owned(),
            entity_type: "thing".to_owned(),
            entity_id: n.to_string(),
            before: None,
            after: Some(JsonText::of(&serde_json::json!({ "x": 0.1, "n": n }))),
            metadata: JsonText::of(&serde_json::json!({})),
            created_at: NOW,
        }
    }

    /// Returns the lines of an archive with four links of two chains.
    fn lines(key: &Ed25519Private) -> Vec<Vec<u8>> {
        let mut heads = [0, 1].map(|n| {
            let platform = PlatformId::parse(&format!("p-{n}"));
            AuditHead::empty(AuditChain::of(platform.as_ref()))
        });
        let mut writer = ArchiveWriter::after(6);
        let mut lines = Vec::new();
        for n in 0..4 {
            let position = i64::try_from(n).unwrap() + 7;
            let entry = entry(n);
            let seal = heads[n % 2].append(&entry.id, Some(&entry), position, NOW);
            let (line, is_first) = writer.link(&seal, &entry).unwrap();
            assert_eq!(is_first, n < 2);
            lines.push(line);
        }
        let entropy = SeededEntropy::new(2);
        for head in &heads {
            let id = AuditCheckpointId::generate(NOW, &entropy);
            let platform = head.chain.platform_id();
            let signed = AuditCheckpoint::sign(key, id, platform, head, NOW);
            assert_eq!(
                writer.ends_with(head.chain.as_ref(), head.seq, &head.hash),
                Some(true)
            );
            lines.push(writer.checkpoint(&signed));
        }
        let month = Month::of(NOW);
        let archive = AuditArchive {
            month: month.to_string(),
            keys_before: month.next().first_key(),
            after: 6,
            position: 10,
            feed_position: 0,
            feed_hash: GENESIS.to_owned(),
            digest: writer.digest(),
            previous: GENESIS.to_owned(),
            archived_at: NOW,
            jws: String::new(),
            removed_at: None,
        };
        lines.push(ArchiveWriter::statement(&archive.sign(key)));
        lines
    }

    fn verify(key: &Ed25519Private, lines: &[Vec<u8>]) -> Result<ArchiveStatement, ArchiveFault> {
        let key = key.public();
        let mut verifier = ArchiveVerifier::new(&key);
        for line in lines {
            verifier.check(line)?;
        }
        verifier.finish()
    }

    #[test]
    fn an_archive_is_accepted_and_every_changed_byte_is_found() {
        let entropy = SeededEntropy::new(1);
        let [key, other] = [(); 2].map(|()| Ed25519Private::generate(&entropy));
        let lines = lines(&key);
        let statement = verify(&key, &lines).unwrap();
        assert_eq!((statement.after, statement.position), (6, 10));
        let content: Vec<u8> = lines.concat();
        let mut digest = ContentDigest::default();
        lines.iter().for_each(|line| digest.add(line));
        assert_eq!(digest.finish(), statement.digest);
        verify(&other, &lines).unwrap_err();
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 1;
            let changed: Vec<Vec<u8>> = changed
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            assert!(verify(&key, &changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn every_missing_or_repeated_line_is_found() {
        let key = Ed25519Private::generate(&SeededEntropy::new(1));
        let lines = lines(&key);
        for at in 0..lines.len() {
            let mut missing = lines.clone();
            let line = missing.remove(at);
            assert!(verify(&key, &missing).is_err(), "line {at} is missing");
            missing.insert(at, line.clone());
            missing.insert(at, line);
            assert!(verify(&key, &missing).is_err(), "line {at} occurs twice");
        }
    }

    #[test]
    fn a_writer_refuses_links_that_do_not_follow_or_do_not_match_their_entry() {
        let mut head = AuditHead::empty(AuditChain::of(PlatformId::parse("p-0").as_ref()));
        let seals =
            [0, 2, 4].map(|n| (head.append(&entry(n).id, Some(&entry(n)), 1, NOW), entry(n)));
        let at = |n: usize, position: i64| AuditSeal {
            position,
            ..seals[n].0.clone()
        };
        let mut writer = ArchiveWriter::after(0);
        writer.link(&at(0, 1), &seals[0].1).unwrap();
        let gap = ArchiveFault::PositionMissing { expected: 2 };
        assert_eq!(writer.link(&at(1, 3), &seals[1].1), Err(gap));
        let broken = ArchiveFault::ChainBroken(2);
        assert_eq!(writer.link(&at(2, 2), &seals[2].1), Err(broken));
        let changed = ArchiveFault::EntryChanged(2);
        assert_eq!(writer.link(&at(1, 2), &seals[2].1), Err(changed));
    }
}
