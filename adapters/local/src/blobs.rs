//! Blob storage in a folder, with one file per key.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::{BlobError, BlobReader, Blobs, StagedBlob, is_blob_key};

use crate::data_dir::{DataDir, StagingPath};
use crate::error::{LocalError, Result, run_blocking};

/// Blob storage in a folder. A staged blob is a file of the same file system, so committing it does not copy its bytes.
#[derive(Clone, Debug)]
pub struct FileBlobs {
    data: Arc<DataDir>,
}

impl FileBlobs {
    /// Opens the folder and removes the staged files of killed processes. Creates the folder if it does not exist. The
    /// folder must not be used for anything else.
    ///
    /// # Errors
    /// [`LocalError::Io`] if the folder cannot be created or read.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let data = run_blocking(move || DataDir::open(&root)).await?;
        Ok(Self {
            data: Arc::new(data),
        })
    }
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError> {
        let data = Arc::clone(&self.data);
        let (staged, file) = run_blocking(move || data.stage_file()).await?;
        Ok(Box::new(StagedFile {
            data: Arc::clone(&self.data),
            staged,
            file: Arc::new(file),
        }))
    }

    async fn open(&self, key: &str) -> Result<Box<dyn BlobReader>, BlobError> {
        let (data, key) = (Arc::clone(&self.data), validate_key(key)?);
        let file = run_blocking(move || data.open_file(&[&key])).await?;
        Ok(Box::new(file.ok_or(BlobError::Missing)?))
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        let (data, key) = (Arc::clone(&self.data), validate_key(key)?);
        run_blocking(move || data.remove_file(&[&key])).await?;
        Ok(())
    }

    async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
        let data = Arc::clone(&self.data);
        let old = run_blocking(move || {
            let mut old = Vec::new();
            for key in data
                .list(&[])?
                .into_iter()
                .filter(|key| validate_key(key).is_ok())
            {
                if data.age(&[&key])?.is_some_and(|found| found > age) {
                    old.push(key);
                }
            }
            Ok(old)
        });
        Ok(old.await?)
    }
}

/// A blob that is not committed yet: a file in the staging folder.
#[derive(Debug)]
struct StagedFile {
    data: Arc<DataDir>,
    staged: StagingPath,
    file: Arc<File>,
}

#[async_trait]
impl StagedBlob for StagedFile {
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), BlobError> {
        let file = Arc::clone(&self.file);
        run_blocking(move || Ok((&*file).write_all(&bytes)?)).await?;
        Ok(())
    }

    async fn open(&self) -> Result<Box<dyn BlobReader>, BlobError> {
        let path = self.staged.path().to_owned();
        // Opens a separate handle: a clone of the existing one would share its read position.
        let file = run_blocking(move || Ok(File::open(path)?)).await?;
        Ok(Box::new(file))
    }

    async fn commit(self: Box<Self>, key: &str) -> Result<(), BlobError> {
        let key = validate_key(key)?;
        let Self { data, staged, file } = *self;
        run_blocking(move || data.commit_file(staged, &file, &[&key])).await?;
        Ok(())
    }
}

fn validate_key(key: &str) -> Result<String> {
    if is_blob_key(key) {
        Ok(key.to_owned())
    } else {
        Err(LocalError::Invalid(format!("{key:?} is not a blob key")))
    }
}
