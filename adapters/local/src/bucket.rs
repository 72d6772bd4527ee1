//! A bucket: a folder with one file per object. The file name is the digest of the key, so every key is a safe and
//! short file name.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use core_domain::kernel::Clock;
use core_domain::registry::ResourceType;

use crate::data_dir::DataDir;
use crate::error::{LocalError, Result};
use crate::execution::Execution;
use crate::names::digest;
use crate::object::{Object, ObjectInfo, ObjectMetadata, ObjectReader, ObjectWriter};
use crate::object_list::{ListQuery, ObjectPage, PageCollector};

/// The subfolder of a bucket that contains the objects.
pub(crate) const FOLDER: &str = "objects";

/// An open object bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    data: Arc<DataDir>,
    clock: Arc<dyn Clock>,
    execution: Execution,
    name: String,
}

impl Bucket {
    pub(crate) const fn new(
        data: Arc<DataDir>,
        clock: Arc<dyn Clock>,
        execution: Execution,
        name: String,
    ) -> Self {
        Self {
            data,
            clock,
            execution,
            name,
        }
    }

    /// Stores an object and replaces any previous object of the key. The object is durable when this returns.
    ///
    /// # Errors
    /// Those of [`Bucket::put_object`].
    pub async fn put(&self, key: &str, content_type: &str, content: Vec<u8>) -> Result<ObjectInfo> {
        let metadata = ObjectMetadata {
            content_type: content_type.to_owned(),
            ..ObjectMetadata::default()
        };
        self.put_object(key, metadata, content.into()).await
    }

    /// Stores an object like [`Bucket::put`], with HTTP metadata and custom metadata.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] if the key is empty or longer than 1,024 bytes. [`LocalError::Limit`] if the object is
    /// too large, or if its metadata is longer than 8,192 bytes. Each metadata pair counts 32 bytes more than its
    /// texts. [`LocalError::Missing`] if the bucket was deleted.
    pub async fn put_object(
        &self,
        key: &str,
        metadata: ObjectMetadata,
        content: Bytes,
    ) -> Result<ObjectInfo> {
        let writer = self.begin(key, metadata).await?;
        let writer = self.append(writer, content).await?;
        self.commit(writer, |_| Ok(())).await
    }

    /// Starts writing an object to the staging folder. [`Bucket::commit`] makes it visible.
    pub(crate) async fn begin(&self, key: &str, metadata: ObjectMetadata) -> Result<ObjectWriter> {
        let info = ObjectInfo::new(key, metadata, self.clock.now())?;
        self.run(move |bucket| {
            let staged = bucket.data.stage_file()?;
            ObjectWriter::begin(info, staged, bucket.execution.limits.object_bytes)
        })
        .await
    }

    /// Appends bytes to the content of an object that is being written.
    pub(crate) async fn append(
        &self,
        mut writer: ObjectWriter,
        piece: Bytes,
    ) -> Result<ObjectWriter> {
        let append = move || {
            writer.append(&piece)?;
            Ok(writer)
        };
        self.execution.run(append).await
    }

    /// Stores the object under its key if `check` accepts it, and replaces any previous object of the key.
    pub(crate) async fn commit(
        &self,
        writer: ObjectWriter,
        check: impl FnOnce(&ObjectInfo) -> Result<()> + Send + 'static,
    ) -> Result<ObjectInfo> {
        self.run(move |bucket| {
            let (info, staged, file) = writer.finish()?;
            check(&info)?;
            let name = file_name(&info.key);
            bucket
                .data
                .commit_file(staged, &file, &bucket.path_parts(&name))?;
            Ok(info)
        })
        .await
    }

    /// Returns the object of a key, with its content in memory. Returns `None` if the key has no object.
    ///
    /// # Errors
    /// [`LocalError::Missing`] if the bucket was deleted.
    pub async fn get(&self, key: &str) -> Result<Option<Object>> {
        let key = key.to_owned();
        self.run(move |bucket| {
            let Some(mut reader) = bucket.reader(&file_name(&key))? else {
                return Ok(None);
            };
            let content = reader.read(0, u64::MAX)?;
            let info = reader.info;
            Ok(Some(Object { info, content }))
        })
        .await
    }

    /// Opens the object of a key for reading with [`Bucket::read`]. Returns `None` if the key has no object.
    pub(crate) async fn open(&self, key: &str) -> Result<Option<ObjectReader>> {
        let file = file_name(key);
        self.run(move |bucket| bucket.reader(&file)).await
    }

    /// Reads at most `max` bytes of an open object, starting at `offset`.
    pub(crate) async fn read(
        &self,
        mut reader: ObjectReader,
        offset: u64,
        max: u64,
    ) -> Result<(ObjectReader, Vec<u8>)> {
        let read = move || {
            let piece = reader.read(offset, max)?;
            Ok((reader, piece))
        };
        self.execution.run(read).await
    }

    /// Returns the description of the object of a key. Returns `None` if the key has no object.
    ///
    /// # Errors
    /// [`LocalError::Missing`] if the bucket was deleted.
    pub async fn head(&self, key: &str) -> Result<Option<ObjectInfo>> {
        Ok(self.open(key).await?.map(|reader| reader.info))
    }

    /// Deletes the object of a key. Returns whether the object existed.
    ///
    /// # Errors
    /// [`LocalError::Missing`] if the bucket was deleted.
    pub async fn delete(&self, key: &str) -> Result<bool> {
        let file = file_name(key);
        self.run(move |bucket| bucket.data.remove_file(&bucket.path_parts(&file)))
            .await
    }

    /// Returns the first objects whose keys begin with `prefix` and come after `after`, in byte order of the keys. Returns at
    /// most 1,000 objects, and fewer if their keys and metadata take more than about 8 MiB of memory.
    ///
    /// # Errors
    /// [`LocalError::Missing`] if the bucket was deleted; [`LocalError::Limit`] if the bucket has so many objects that
    /// reading their keys takes too long.
    pub async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<ObjectInfo>> {
        let query = ListQuery {
            prefix: prefix.to_owned(),
            after: after.to_owned(),
            delimiter: String::new(),
            limit,
        };
        Ok(self.page(query, |_| Ok(())).await?.objects)
    }

    /// Lists one page of objects and folders. Calls `allow` after each object with the memory that the page uses, in
    /// bytes. If `allow` returns an error, the list stops with that error.
    pub(crate) async fn page(
        &self,
        query: ListQuery,
        mut allow: impl FnMut(usize) -> Result<()> + Send + 'static,
    ) -> Result<ObjectPage> {
        self.run(move |bucket| {
            let timeout = bucket.execution.limits.call_timeout;
            let started = Instant::now();
            let folder = [ResourceType::R2.as_str(), &bucket.name, FOLDER];
            let mut page = PageCollector::new(query);
            bucket.data.visit(&folder, |file| {
                if started.elapsed() >= timeout {
                    let what = format!(
                        "the call took longer than {} seconds",
                        timeout.as_secs_f64()
                    );
                    return Err(LocalError::Limit(what));
                }
                // `None` if the object was deleted after the folder was read.
                if let Some(reader) = bucket.reader(&file)? {
                    page.add(reader.info);
                }
                allow(page.bytes())
            })?;
            Ok(page.finish())
        })
        .await
    }

    async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T> + Send + 'static,
    {
        let bucket = self.clone();
        let run = move || {
            let folder = [ResourceType::R2.as_str(), &bucket.name, FOLDER];
            if bucket.data.path(&folder)?.try_exists()? {
                work(&bucket)
            } else {
                Err(LocalError::Missing(format!("r2 {}", bucket.name)))
            }
        };
        self.execution.run(run).await
    }

    fn reader(&self, file: &str) -> Result<Option<ObjectReader>> {
        ObjectReader::open(&self.path(file)?)
    }

    fn path(&self, file: &str) -> Result<PathBuf> {
        self.data.path(&self.path_parts(file))
    }

    fn path_parts<'a>(&'a self, file: &'a str) -> [&'a str; 4] {
        [ResourceType::R2.as_str(), &self.name, FOLDER, file]
    }
}

fn file_name(key: &str) -> String {
    digest(&[key.as_bytes()])
}
