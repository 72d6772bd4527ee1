//! The plan of an upload: which files of a site are uploaded, and which contents the provider already has.

use std::collections::BTreeSet;
use std::io::{self, Read};

use core_domain::cli::SiteFile;
use core_domain::port::Site;

use super::asset::{Asset, MAX_FILE_BYTES, Role, SettingsFile, hash_of};
use super::known_contents::{KnownContents, KnownFile};

/// The classified files of a site.
#[derive(Debug, Default)]
pub(super) struct UploadPlan {
    /// One item for each uploaded file, in order; `None` for files that are not passed to the provider.
    pub(super) uploaded: Vec<Option<Asset>>,
    /// The files that are not uploaded, because the provider has their contents.
    pub(super) kept: Vec<Asset>,
    /// The files that configure how the site is served.
    pub(super) settings: Vec<SettingsFile>,
}

/// The reason for which a site cannot be uploaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    #[error("{0}")]
    InvalidSite(String),
    #[error("the site could not be read")]
    Io(#[from] io::Error),
}

impl UploadPlan {
    /// Reads all uploaded files once, in small pieces. Looks up the others among the known contents. Blocks on the disk.
    pub(super) fn read(site: &dyn Site, known: KnownContents) -> Result<Self, PlanError> {
        for file in site.files() {
            if file.size > MAX_FILE_BYTES {
                let what = format!(
                    "the file {:?} is larger than {MAX_FILE_BYTES} bytes",
                    file.path
                );
                return Err(PlanError::InvalidSite(what));
            }
            if Role::of(&file.path) == Role::WorkerFolder {
                let what = "_worker.js is a folder: bundle it into one file".to_owned();
                return Err(PlanError::InvalidSite(what));
            }
        }
        let mut plan = Self::default();
        site.read(&mut |file, content| {
            let asset = match Role::of(&file.path) {
                Role::Asset => {
                    let hash = hash_of(&file.path, content)?;
                    Some(Asset::new(&file.path, hash, file.size, file.digest))
                }
                Role::Settings(name) => {
                    let mut bytes = Vec::new();
                    content.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
                    plan.settings.push(SettingsFile {
                        name,
                        digest: file.digest,
                        content: bytes,
                    });
                    None
                }
                Role::Ignored | Role::WorkerFolder => None,
            };
            plan.uploaded.push(asset);
            Ok(())
        })?;
        plan.add_kept(site, known)?;
        Ok(plan)
    }

    /// Adds the files that are not uploaded. Their contents are known, or those of other files that are uploaded.
    fn add_kept(&mut self, site: &dyn Site, mut known: KnownContents) -> Result<(), PlanError> {
        let uploaded: BTreeSet<&str> = paths(site.uploaded_files());
        if uploaded.len() == site.files().len() {
            return Ok(());
        }
        let contents = self.uploaded.iter().flatten().cloned();
        known.add(contents.collect(), self.settings.clone());
        let is_kept = |file: &&SiteFile| !uploaded.contains(file.path.as_str());
        let mut lost = 0;
        for file in site.files().iter().filter(is_kept) {
            match known.find(file) {
                Some(KnownFile::Asset(hash)) => {
                    let hash = hash.to_owned();
                    let asset = Asset::new(&file.path, hash, file.size, file.digest);
                    self.kept.push(asset);
                }
                Some(KnownFile::Settings(settings)) => self.settings.push(settings),
                Some(KnownFile::Unused) => {}
                None => lost += 1,
            }
        }
        if lost > 0 {
            return Err(PlanError::InvalidSite(lost_contents(lost)));
        }
        Ok(())
    }

    /// Returns all files that visitors can request.
    pub(super) fn assets(&self) -> impl Iterator<Item = &Asset> {
        self.uploaded.iter().flatten().chain(&self.kept)
    }
}

/// Returns the message for contents that are neither uploaded nor stored.
pub(super) fn lost_contents(count: usize) -> String {
    format!("{count} contents of the site are no longer stored; plan the deployment again")
}

fn paths(files: &[SiteFile]) -> BTreeSet<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use core_domain::testing::MemorySite;

    use super::*;

    #[test]
    fn settings_and_sources_are_not_uploaded_as_pages() {
        let site: MemorySite = [
            ("index.html", "a"),
            ("_headers", "b"),
            ("_routes.json", "c"),
            ("sub/_headers", "d"),
            ("functions/x.js", "e"),
            ("functions", "f"),
            ("a/node_modules/b.js", "g"),
            (".DS_Store", "h"),
        ]
        .into_iter()
        .collect();
        let plan = UploadPlan::read(&site, KnownContents::default()).unwrap();
        let paths: Vec<_> = plan.assets().map(|asset| asset.path.as_str()).collect();
        assert_eq!(paths, ["index.html", "sub/_headers", "functions"]);
        assert_eq!(plan.uploaded.len(), 8);
        let settings: Vec<_> = plan.settings.iter().map(|file| file.name).collect();
        assert_eq!(settings, ["_headers", "_routes.json"]);
        let bundle: MemorySite = [("index.html", "a"), ("_worker.js/index.js", "b")]
            .into_iter()
            .collect();
        assert!(matches!(
            UploadPlan::read(&bundle, KnownContents::default()),
            Err(PlanError::InvalidSite(_))
        ));
    }
}
