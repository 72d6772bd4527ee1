//! Files of direct uploads.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// All uploaded files, and the valid tokens.
#[derive(Default)]
pub(crate) struct Assets {
    pub(crate) files: BTreeMap<String, Bytes>,
    pub(crate) revoked: BTreeSet<String>,
    /// The lowest number of a token that has not expired.
    pub(crate) valid_from: u64,
    pub(crate) issued: u64,
}

impl Assets {
    pub(crate) fn file(&self, hash: &str) -> Option<&Bytes> {
        self.files.get(hash)
    }

    /// Removes all files but those with these hashes.
    pub(crate) fn keep_only(&mut self, hashes: &BTreeSet<String>) {
        self.files.retain(|hash, _| hashes.contains(hash));
    }

    /// Expires one token.
    pub(crate) fn revoke(&mut self, token: &str) {
        self.revoked.insert(token.to_owned());
    }

    /// Expires all issued tokens.
    pub(crate) const fn revoke_all(&mut self) {
        self.valid_from = self.issued + 1;
    }
}
