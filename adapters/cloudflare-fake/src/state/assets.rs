//! Static assets of workers.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// Uploaded files, and the sessions that requested them.
#[derive(Default)]
pub(crate) struct Assets {
    pub(crate) files: BTreeMap<String, Bytes>,
    pub(crate) sessions: BTreeMap<String, Session>,
}

pub(crate) struct Session {
    pub(crate) script: String,
    pub(crate) hashes: BTreeSet<String>,
}

impl Assets {
    pub(crate) fn missing(&self, session: &Session) -> Vec<String> {
        let hashes = session
            .hashes
            .iter()
            .filter(|hash| !self.files.contains_key(*hash));
        hashes.cloned().collect()
    }
}
