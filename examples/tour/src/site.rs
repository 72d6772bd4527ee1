//! The site that the tour deploys, packed from its folder.

use std::fs;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::failure::Failure;

/// A built site.
#[derive(Debug)]
pub(crate) struct Site {
    /// The path inside the site and the content of every file.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Site {
    /// Reads every file below a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let mut files = Vec::new();
        let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
        while let Some(current) = folders.pop() {
            for entry in fs::read_dir(&current)
                .map_err(|e| Failure(format!("{}: {e}", current.display())))?
            {
                let path = entry.map_err(Failure::from)?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let inside = path.strip_prefix(folder).unwrap_or(&path);
                let name = inside
                    .components()
                    .map(|c| c.as_os_str().to_string_lossy())
                    .collect::<Vec<_>>()
                    .join("/");
                files.push((name, fs::read(&path).map_err(Failure::from)?));
            }
        }
        files.sort();
        Ok(Self { files })
    }

    /// Returns the site as `tar.gz`.
    pub(crate) fn pack(&self) -> Result<Vec<u8>, Failure> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for (name, content) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive
                .append_data(&mut header, name, content.as_slice())
                .map_err(Failure::from)?;
        }
        archive
            .into_inner()
            .and_then(GzEncoder::finish)
            .map_err(Failure::from)
    }
}
