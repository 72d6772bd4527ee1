//! A bucket of objects: a folder with one file an object. The file starts with a line that says what it is; its name is
//! the digest of the key, so that every key is safe and has room.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use core_domain::kernel::{Clock, Timestamp};
use core_domain::registry::ResourceType;
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, is_absence};
use crate::error::{LocalError, Result, blocking};
use crate::names::{content_digest, digest};

/// The folder of the objects inside the bucket.
pub(crate) const FOLDER: &str = "objects";

/// The longest key, in bytes.
const MAX_KEY: usize = 1024;

/// An open bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    data: Arc<DataDir>,
    clock: Arc<dyn Clock>,
    name: String,
}

/// What is known of an object without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectInfo {
    /// Its key.
    pub key: String,
    /// Its content type, as given.
    pub content_type: String,
    /// SHA-256 of the content in hexadecimal.
    pub etag: String,
    /// Length of the content in bytes.
    pub size: u64,
    /// When it was stored; the epoch for objects that do not say it.
    #[serde(default = "epoch")]
    pub uploaded_at: Timestamp,
    /// What its writer wants answered with it besides the content type: `cacheControl` for one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub http: BTreeMap<String, String>,
    /// What its writer noted with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom: BTreeMap<String, String>,
}

/// What a writer says of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// Its content type.
    pub content_type: String,
    /// See [`ObjectInfo::http`].
    pub http: BTreeMap<String, String>,
    /// See [`ObjectInfo::custom`].
    pub custom: BTreeMap<String, String>,
}

/// An object with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What is known of it.
    pub info: ObjectInfo,
    /// The content.
    pub content: Vec<u8>,
}

impl Bucket {
    pub(crate) const fn new(data: Arc<DataDir>, clock: Arc<dyn Clock>, name: String) -> Self {
        Self { data, clock, name }
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
    /// [`LocalError::Invalid`] when the key is empty or longer than 1024 bytes; [`LocalError::Missing`] when the bucket
    /// was removed.
    pub async fn put_object(
        &self,
        key: &str,
        metadata: ObjectMetadata,
        content: Bytes,
    ) -> Result<ObjectInfo> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(LocalError::Invalid(format!("{key:?} is not a key")));
        }
        let key = key.to_owned();
        self.run(move |bucket| {
            let info = ObjectInfo {
                etag: content_digest(&content),
                size: content.len() as u64,
                key,
                content_type: metadata.content_type,
                uploaded_at: bucket.clock.now(),
                http: metadata.http,
                custom: metadata.custom,
            };
            let mut head =
                serde_json::to_vec(&info).map_err(|error| LocalError::Io(error.into()))?;
            head.push(b'\n');
            let file = file_name(&info.key);
            bucket
                .data
                .replace_file(&bucket.parts(&file), &[&head, &content])?;
            Ok(info)
        })
        .await
    }

    /// The object of a key.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when the bucket was removed.
    pub async fn get(&self, key: &str) -> Result<Option<Object>> {
        let file = file_name(key);
        self.run(move |bucket| {
            let Some((info, mut rest)) = bucket.read_head(&file)? else {
                return Ok(None);
            };
            let mut content = Vec::new();
            rest.read_to_end(&mut content)?;
            Ok(Some(Object { info, content }))
        })
        .await
    }

    /// What is known of the object of a key.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when the bucket was removed.
    pub async fn head(&self, key: &str) -> Result<Option<ObjectInfo>> {
        let file = file_name(key);
        self.run(move |bucket| Ok(bucket.read_head(&file)?.map(|(info, _)| info)))
            .await
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

    /// The first objects whose keys begin with `prefix` and come after `after`, in byte order of the keys.
    ///
    /// # Errors
    /// [`LocalError::Missing`] when the bucket was removed.
    pub async fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<Vec<ObjectInfo>> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        self.run(move |bucket| {
            let folder = [ResourceType::R2.as_str(), &bucket.name, FOLDER];
            let mut found = Vec::new();
            for file in bucket.data.list(&folder)? {
                // Deleted since the folder was read: not in the list.
                let head = bucket.read_head(&file)?;
                found.extend(
                    head.map(|(info, _)| info)
                        .filter(|info| info.key.starts_with(&prefix) && info.key > after),
                );
            }
            found.sort_by(|a, b| a.key.cmp(&b.key));
            found.truncate(limit);
            Ok(found)
        })
        .await
    }

    async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T> + Send + 'static,
    {
        let bucket = self.clone();
        blocking(move || {
            let folder = [ResourceType::R2.as_str(), &bucket.name, FOLDER];
            if bucket.data.path(&folder)?.try_exists()? {
                work(&bucket)
            } else {
                Err(LocalError::Missing(format!("r2 {}", bucket.name)))
            }
        })
        .await
    }

    fn parts<'a>(&'a self, file: &'a str) -> [&'a str; 4] {
        [ResourceType::R2.as_str(), &self.name, FOLDER, file]
    }

    fn read_head(&self, file: &str) -> Result<Option<(ObjectInfo, BufReader<File>)>> {
        let path = self.data.path(&self.parts(file))?;
        let opened = match File::open(&path) {
            Ok(opened) => opened,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut reader = BufReader::new(opened);
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line)?;
        let info = serde_json::from_slice(&line).map_err(|error| damaged(&path, &error))?;
        Ok(Some((info, reader)))
    }
}

const fn epoch() -> Timestamp {
    Timestamp::EPOCH
}

fn file_name(key: &str) -> String {
    digest(&[key.as_bytes()])
}

fn damaged(path: &Path, error: &serde_json::Error) -> LocalError {
    LocalError::damaged(path, error)
}
