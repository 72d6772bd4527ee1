//! Reading uploaded sites. Adapters implement the archive formats; `cli` decides what a site may contain.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::Arc;

use async_trait::async_trait;

use super::{BlobReader, Cause};
use crate::cli::{SiteError, SiteFile, SiteManifest};

/// The reason why an upload cannot be opened as a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The content of the upload is not a valid site.
    #[error(transparent)]
    Refused(#[from] SiteError),
    /// The upload could not be read. The operation can be retried.
    #[error("the upload could not be read")]
    Unreadable(#[source] Cause),
}

/// Reads uploads (tar, tar.gz or zip) as sites.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait SiteArchives: Send + Sync + std::fmt::Debug {
    /// Reads the whole upload once and checks its content with [`crate::cli::SiteBuilder`]. Equal uploads result in
    /// equal sites. The memory use depends only on the file names, whose total length is limited.
    ///
    /// # Errors
    /// - [`ArchiveError::Refused`] if the content is not a valid site.
    /// - [`ArchiveError::Unreadable`] if the upload cannot be read.
    async fn open(&self, upload: Box<dyn BlobReader>) -> Result<Arc<dyn Site>, ArchiveError>;

    /// Reads an upload of some files of a site, and completes it with the list of all files, which is the JSON of a
    /// [`SiteManifest`](crate::cli::SiteManifest). An upload without content has no files.
    ///
    /// # Errors
    /// - [`ArchiveError::Refused`] if the content of the upload is not allowed, or is not in the list.
    /// - [`ArchiveError::Unreadable`] if the upload or the list cannot be read.
    async fn open_part(
        &self,
        upload: Box<dyn BlobReader>,
        manifest: Box<dyn BlobReader>,
    ) -> Result<Arc<dyn Site>, ArchiveError>;
}

/// The function that [`Site::read`] calls with each file and its content.
pub type FileVisitor<'a> = dyn FnMut(&SiteFile, &mut dyn Read) -> io::Result<()> + 'a;

/// A checked site whose content is still in its archive.
pub trait Site: Send + Sync + std::fmt::Debug {
    /// Returns the files of the site. Every path occurs once.
    fn files(&self) -> &[SiteFile];

    /// Returns the files whose content was uploaded. For all others the provider must have the content. Default: all.
    fn uploaded_files(&self) -> &[SiteFile] {
        self.files()
    }

    /// Calls the visitor with the content of every uploaded file, in the order of [`Site::uploaded_files`]. The visitor does not have to
    /// read a whole file. The method can be called repeatedly. It blocks on disk access, so do not call it on an async
    /// thread.
    ///
    /// # Errors
    /// The first error of the visitor, which ends the reading, or an error of the archive.
    fn read(&self, visitor: &mut FileVisitor<'_>) -> io::Result<()>;
}

/// A site of which only some files are uploaded. The provider has the contents of the others.
#[derive(Clone, Debug)]
pub struct PartialSite {
    manifest: SiteManifest,
    upload: Arc<dyn Site>,
}

impl PartialSite {
    /// Completes an upload of some files with the list of all files.
    ///
    /// # Errors
    /// [`SiteError::NotAllowed`] if an uploaded file is not in the list, or has another content.
    pub fn new(manifest: SiteManifest, upload: Arc<dyn Site>) -> Result<Self, SiteError> {
        let files = manifest.files().iter();
        let by_path: BTreeMap<&str, &SiteFile> =
            files.map(|file| (file.path.as_str(), file)).collect();
        for file in upload.files() {
            let refuse = |code, what| {
                let path = &file.path;
                Err(SiteError::NotAllowed(code, format!("{path:?} {what}")))
            };
            match by_path.get(file.path.as_str()) {
                None => return refuse("not_planned", "is not in the plan"),
                Some(planned) if planned.digest != file.digest => {
                    return refuse("content_differs", "has another content than in the plan");
                }
                Some(_) => {}
            }
        }
        drop(by_path);
        Ok(Self { manifest, upload })
    }
}

impl Site for PartialSite {
    fn files(&self) -> &[SiteFile] {
        self.manifest.files()
    }

    fn uploaded_files(&self) -> &[SiteFile] {
        self.upload.files()
    }

    fn read(&self, visitor: &mut FileVisitor<'_>) -> io::Result<()> {
        self.upload.read(visitor)
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::{PlannedFile, SiteLimits};
    use crate::kernel::hex;
    use crate::testing::MemorySite;

    use super::*;

    fn manifest(files: &[(&str, &str)]) -> SiteManifest {
        let site = MemorySite::from_iter(files.iter().copied());
        let files = site.files().iter().map(|file| PlannedFile {
            path: file.path.clone(),
            size: file.size,
            digest: hex(&file.digest),
        });
        SiteManifest::new(&files.collect::<Vec<_>>(), SiteLimits::default()).unwrap()
    }

    #[test]
    fn an_upload_contains_only_planned_files_with_the_planned_content() {
        let code = |upload: &[(&str, &str)]| {
            let upload = Arc::new(MemorySite::from_iter(upload.iter().copied()));
            let all = manifest(&[("index.html", "x"), ("a", "y")]);
            match PartialSite::new(all, upload) {
                Ok(site) => Ok((site.files().len(), site.uploaded_files().len())),
                Err(SiteError::NotAllowed(code, _)) => Err(code),
                Err(other) => panic!("{other:?}"),
            }
        };
        assert_eq!(code(&[]), Ok((2, 0)));
        assert_eq!(code(&[("a", "y")]), Ok((2, 1)));
        assert_eq!(code(&[("b", "y")]), Err("not_planned"));
        assert_eq!(code(&[("a", "x")]), Err("content_differs"));
    }
}
