//! A bucket of objects: a folder with one file an object, whose name is the digest of the key, so that every key is safe
//! and has room.

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

/// The folder of the objects inside the bucket.
pub(crate) const FOLDER: &str = "objects";

/// An open bucket.
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

    /// Stores an object, durable when this returns, replacing what the key held.
    ///
    /// # Errors
    /// As [`Bucket::put_object`].
    pub async fn put(&self, key: &str, content_type: &str, content: Vec<u8>) -> Result<ObjectInfo> {
        let metadata = ObjectMetadata {
            content_type: content_type.to_owned(),
            ..ObjectMetadata::default()
        };
        self.put_object(key, metadata, content.into()).await
    }

    /// As [`Bucket::put`], with more that is known of the object.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] when the key is empty or longer than 1024 bytes; [`LocalError::Limit`] if the metadata is
    /// longer than 8,192 bytes, where each pair counts 32 bytes more, or the object is too large; [`LocalError::Missing`] when the bucket was removed.
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

    /// Begins an object. [`Bucket::commit`] puts it into its place.
    pub(crate) async fn begin(&self, key: &str, metadata: ObjectMetadata) -> Result<ObjectWriter> {
        let info = ObjectInfo::new(key, metadata, self.clock.now())?;
        self.run(move |bucket| {
            let staged = bucket.data.stage_file()?;
            ObjectWriter::begin(info, staged, bucket.execution.limits.object_bytes)
        })
        .await
    }

    /// Appends to the content of an object that was begun.
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

    /// Puts an object into its place if `check` accepts it, replacing what the key held.
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
                .commit_file(staged, &file, &bucket.parts(&name))?;
            Ok(info)
        })
        .await
    }

    /// The object of a key, whole in memory.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when the bucket was removed.
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

    /// Opens the object of a key, to be read in pieces by [`Bucket::read`].
    pub(crate) async fn open(&self, key: &str) -> Result<Option<ObjectReader>> {
        let file = file_name(key);
        self.run(move |bucket| bucket.reader(&file)).await
    }

    /// Reads up to `max` bytes of an open object from `offset` on.
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

    /// What is known of the object of a key.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when the bucket was removed.
    pub async fn head(&self, key: &str) -> Result<Option<ObjectInfo>> {
        Ok(self.open(key).await?.map(|reader| reader.info))
    }

    /// Removes a key; `false` when it held nothing.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when the bucket was removed.
    pub async fn delete(&self, key: &str) -> Result<bool> {
        let file = file_name(key);
        self.run(move |bucket| bucket.data.remove_file(&bucket.parts(&file)))
            .await
    }

    /// Returns the first objects whose keys begin with `prefix` and come after `after`, in byte order of the keys. Returns at
    /// most 1,000 objects, and fewer if their keys and metadata take more than about 8 MiB of memory.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when the bucket was removed; [`LocalError::Limit`] if the bucket has so many objects that
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

    /// Lists a page of objects and folders. Calls `allow` after each object with the memory of the page in bytes.
    /// An error of `allow` ends the list.
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
                // Deleted since the folder was read: not in the list.
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
        self.data.path(&self.parts(file))
    }

    fn parts<'a>(&'a self, file: &'a str) -> [&'a str; 4] {
        [ResourceType::R2.as_str(), &self.name, FOLDER, file]
    }
}

fn file_name(key: &str) -> String {
    digest(&[key.as_bytes()])
}
