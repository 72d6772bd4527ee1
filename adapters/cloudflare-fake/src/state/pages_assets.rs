//! Files of direct uploads.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// All files that were uploaded.
#[derive(Default)]
pub(crate) struct Assets {
    pub(crate) files: BTreeMap<String, Bytes>,
    pub(crate) revoked: BTreeSet<String>,
    /// Tokens with a lower number have expired.
    pub(crate) valid_from: u64,
    pub(crate) issued: u64,
}

impl Assets {
    pub(crate) fn file(&self, hash: &str) -> Option<&Bytes> {
        self.files.get(hash)
    }

    /// Lets one token expire.
    pub(crate) fn revoke(&mut self, token: &str) {
        self.revoked.insert(token.to_owned());
    }

    /// Lets all tokens expire that were issued.
    pub(crate) const fn revoke_all(&mut self) {
        self.valid_from = self.issued + 1;
    }
}
