//! The contents that Cloudflare has of a project, as far as the receipts of its newest deployments tell.

use std::collections::HashMap;

use core_domain::cli::SiteFile;

use super::asset::{Asset, Role, SettingsFile, extension};

/// The contents of the newest deployments of a project.
#[derive(Debug, Default)]
pub(super) struct KnownContents {
    /// The hashes at Cloudflare and the sizes, by digest and extension.
    assets: HashMap<([u8; 32], String), (String, u64)>,
    /// The contents of settings files, by digest.
    settings: HashMap<[u8; 32], Vec<u8>>,
}

/// A file that does not have to be uploaded.
#[derive(Debug)]
pub(super) enum KnownFile<'k> {
    /// Cloudflare had a content with this hash.
    Asset(&'k str),
    /// The receipt has the content of a settings file.
    Settings(SettingsFile),
    /// Cloudflare gets no such file.
    Unused,
}

impl KnownContents {
    /// Returns the file if its content is known in the role of the file. The role follows from the path.
    pub(super) fn find(&self, file: &SiteFile) -> Option<KnownFile<'_>> {
        match Role::of(&file.path) {
            Role::Asset => {
                let key = (file.digest, extension(&file.path).to_owned());
                let (hash, size) = self.assets.get(&key)?;
                (*size == file.size).then_some(KnownFile::Asset(hash))
            }
            Role::Settings(name) => Some(KnownFile::Settings(SettingsFile {
                name,
                digest: file.digest,
                content: self.settings.get(&file.digest)?.clone(),
            })),
            Role::Ignored | Role::WorkerFolder => Some(KnownFile::Unused),
        }
    }

    /// Returns whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.assets.is_empty() && self.settings.is_empty()
    }

    /// Adds the content of a deployment. A content that is known already stays as it is.
    pub(super) fn add(&mut self, assets: Vec<Asset>, settings: Vec<SettingsFile>) {
        for asset in assets {
            let key = (asset.digest, extension(&asset.path).to_owned());
            let known = (asset.hash, asset.size);
            self.assets.entry(key).or_insert(known);
        }
        let settings = settings.into_iter();
        self.settings
            .extend(settings.map(|file| (file.digest, file.content)));
    }
}
