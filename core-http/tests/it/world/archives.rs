//! An archive format that tests write by hand: one file path per line. The content of each file is its path.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::{SiteError, SiteManifest};
use core_domain::port::{ArchiveError, BlobReader, PartialSite, Site, SiteArchives};
use core_domain::testing::MemorySite;

/// A site archive in that format.
pub(crate) const SITE: &[u8] = b"index.html\nstyle.css";

/// An internal error text that must not reach a client.
pub(crate) const SERVER_PATH: &str = "/srv/core-data/uploads/x: no space left";

// This is not a mock, because a mock cannot be used after the panic that a test requests.
#[derive(Debug)]
struct TextArchives;

pub(crate) fn text_archives() -> Arc<dyn SiteArchives> {
    Arc::new(TextArchives)
}

#[async_trait]
impl SiteArchives for TextArchives {
    async fn open_part(
        &self,
        mut upload: Box<dyn BlobReader>,
        mut manifest: Box<dyn BlobReader>,
    ) -> Result<Arc<dyn Site>, ArchiveError> {
        let (mut bytes, mut json) = (Vec::new(), Vec::new());
        upload.read_to_end(&mut bytes).unwrap();
        manifest.read_to_end(&mut json).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let upload: MemorySite = text.lines().map(|line| (line, line)).collect();
        let manifest = SiteManifest::from_json(&json).unwrap();
        Ok(Arc::new(PartialSite::new(manifest, Arc::new(upload))?))
    }

    async fn open(&self, mut upload: Box<dyn BlobReader>) -> Result<Arc<dyn Site>, ArchiveError> {
        let mut bytes = Vec::new();
        upload.read_to_end(&mut bytes).unwrap();
        let refused = |error: SiteError| Err(ArchiveError::Refused(error));
        match String::from_utf8_lossy(&bytes) {
            t if t.contains("link") => {
                refused(SiteError::NotAllowed("symlink", "a link".to_owned()))
            }
            t if t.contains("bomb") => refused(SiteError::TooLarge("a bomb".to_owned())),
            t if t.contains("junk") => refused(SiteError::UnknownFormat),
            t if t.contains("bad sector") => Err(ArchiveError::Unreadable(SERVER_PATH.into())),
            t if t.contains("panic") => panic!("asked for"),
            t => {
                let site: MemorySite = t.lines().map(|line| (line, line)).collect();
                Ok(Arc::new(site) as Arc<dyn Site>)
            }
        }
    }
}
