//! A site in memory, for tests.

use std::io;

use sha2::{Digest, Sha256};

use crate::cli::SiteFile;
use crate::port::{FileVisitor, Site};

/// A site whose content is in memory. Its files are not checked.
#[derive(Clone, Debug, Default)]
pub struct MemorySite {
    files: Vec<SiteFile>,
    contents: Vec<Vec<u8>>,
}

impl<P: Into<String>, C: Into<Vec<u8>>> FromIterator<(P, C)> for MemorySite {
    fn from_iter<I: IntoIterator<Item = (P, C)>>(files: I) -> Self {
        let mut site = Self::default();
        for (path, content) in files {
            let content = content.into();
            site.files.push(SiteFile {
                path: path.into(),
                size: content.len() as u64,
                digest: Sha256::digest(&content).into(),
            });
            site.contents.push(content);
        }
        site
    }
}

impl Site for MemorySite {
    fn files(&self) -> &[SiteFile] {
        &self.files
    }

    fn read(&self, visitor: &mut FileVisitor<'_>) -> io::Result<()> {
        for (file, content) in self.files.iter().zip(&self.contents) {
            visitor(file, &mut content.as_slice())?;
        }
        Ok(())
    }
}
