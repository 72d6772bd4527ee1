//! The contents that Cloudflare has of a project, as far as the receipts of its newest deployments tell.

use std::collections::HashMap;

use super::asset::{Asset, SettingsFile, extension};

/// The contents of the newest deployments of a project.
#[derive(Debug, Default)]
pub(super) struct KnownContents {
    /// The hashes at Cloudflare and the sizes, by digest and extension.
    files: HashMap<([u8; 32], String), (String, u64)>,
    settings: HashMap<[u8; 32], SettingsFile>,
}

impl KnownContents {
    /// Returns the hash at Cloudflare of a content with this digest and size in a file with this path.
    pub(super) fn hash(&self, path: &str, digest: [u8; 32], size: u64) -> Option<&str> {
        let (hash, known) = self.files.get(&(digest, extension(path).to_owned()))?;
        (*known == size).then_some(hash)
    }

    /// Returns a settings file with this digest.
    pub(super) fn settings(&self, digest: &[u8; 32]) -> Option<&SettingsFile> {
        self.settings.get(digest)
    }

    /// Returns whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.settings.is_empty()
    }

    /// Adds the content of a deployment. A content that is known already stays as it is.
    pub(super) fn add(&mut self, assets: Vec<Asset>, settings: Vec<SettingsFile>) {
        for asset in assets {
            let key = (asset.digest, extension(&asset.path).to_owned());
            let known = (asset.hash, asset.size);
            self.files.entry(key).or_insert(known);
        }
        let settings = settings.into_iter();
        self.settings
            .extend(settings.map(|file| (file.digest, file)));
    }
}
