//! Readers of the log of an owner's objects. They read the files and merge the lines by their ids.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::cli::{LogContent, LogId, LogLine};
use core_domain::kernel::Timestamp;
use core_domain::port::{
    LogBatch, LogError, LogQuery, LogReader, LogStart, ResourceLogs, ResourceRef,
};
use core_domain::registry::is_provider_name;
use tokio::time::Instant;

use super::segment::{self, FilePosition, LineReader, StoredLine};
use super::state::{LogState, Watch};
use super::{LOGGED_TYPES, Logs};
use crate::data_dir::DataDir;
use crate::error::{LocalError, Result};
use crate::infrastructure::LocalInfrastructure;
use crate::manifest::Manifest;
use crate::names::check_name;
use crate::stores::Stores;

/// Maximum number of lines of one read.
const MAX_BATCH_LINES: usize = 200;
/// Maximum length of the texts of one read, in bytes. The last line can exceed it.
const MAX_BATCH_BYTES: usize = 512 * 1024;
/// Maximum time to wait for lines that were added before a log is opened.
const FLUSH_TIME: Duration = Duration::from_secs(1);
/// Interval at which a reader looks for new objects of the owner.
const LIST_INTERVAL: Duration = Duration::from_secs(10);

#[async_trait]
impl ResourceLogs for LocalInfrastructure {
    async fn open(&self, query: LogQuery) -> Result<Option<Box<dyn LogReader>>, LogError> {
        let logs = Arc::clone(&self.logs);
        if let Some(name) = &query.resource {
            let (owner, name) = (query.owner.clone(), name.clone());
            let named = self.run(move |data| objects_named(data, &owner, &name));
            if named.await?.is_empty() {
                return Ok(None);
            }
        }
        // Without these lines a client would miss its own last request.
        let _ = tokio::time::timeout(FLUSH_TIME, logs.flush()).await;
        let reader = LocalLogReader::open(logs, self.stores().clone(), query).await?;
        Ok(Some(Box::new(reader)))
    }
}

/// Returns the owner's objects with this name that have logs.
fn objects_named(data: &DataDir, owner: &str, name: &str) -> Result<Vec<ResourceRef>> {
    let mut objects = Vec::new();
    for resource_type in LOGGED_TYPES.into_iter().filter(|_| is_provider_name(name)) {
        let object = ResourceRef {
            resource_type,
            name: name.to_owned(),
        };
        if is_owned(data, &object, owner)? {
            objects.push(object);
        }
    }
    Ok(objects)
}

/// Returns whether the object exists and belongs to the owner.
fn is_owned(data: &DataDir, object: &ResourceRef, owner: &str) -> Result<bool> {
    match Manifest::read_owned(data, object, owner) {
        Err(LocalError::NameTaken(_)) => Ok(false),
        found => Ok(found?.is_some()),
    }
}

/// Returns all objects of the owner that have logs.
fn objects_of(data: &DataDir, owner: &str) -> Result<Vec<ResourceRef>> {
    let mut objects = Vec::new();
    for resource_type in LOGGED_TYPES {
        data.visit(&[resource_type.as_str()], |name| {
            let object = ResourceRef {
                resource_type,
                name,
            };
            if check_name(&object.name).is_ok() && is_owned(data, &object, owner)? {
                objects.push(object);
            }
            Ok(())
        })?;
    }
    Ok(objects)
}

/// A position in the logs of an owner's objects.
#[derive(Debug)]
struct LocalLogReader {
    logs: Arc<Logs>,
    stores: Stores,
    query: LogQuery,
    watch: Arc<Watch>,
    cursors: Cursors,
    /// The time of the last search for objects; `None` before the first.
    listed_at: Option<Instant>,
}

/// The positions in the logs of several objects.
#[derive(Clone, Debug, Default)]
struct Cursors {
    /// Lines up to this id are not read.
    after: u64,
    objects: BTreeMap<(&'static str, String), Cursor>,
}

/// A position in the log of one object.
#[derive(Clone, Debug)]
struct Cursor {
    object: ResourceRef,
    /// The place of the next line; `None` before the first kept line.
    position: Option<FilePosition>,
    /// The number of the last line that was read; `None` if none was.
    last_number: Option<u64>,
}

impl LocalLogReader {
    async fn open(logs: Arc<Logs>, stores: Stores, query: LogQuery) -> Result<Self> {
        let watch = logs.state.watch(query.listener.clone());
        let mut reader = Self {
            logs,
            stores,
            query,
            watch,
            cursors: Cursors::default(),
            listed_at: None,
        };
        reader.cursors.after = match reader.query.start {
            LogStart::After(id) => id.0,
            LogStart::Tail(count) => {
                reader.find_objects().await?;
                let written = reader.last_written_id();
                let cursors = reader.cursors.clone();
                let find = move |data: &DataDir| cursors.id_before_tail(data, count, written);
                reader.stores.run(find).await?
            }
        };
        Ok(reader)
    }

    /// All lines up to this id can be read.
    fn last_written_id(&self) -> u64 {
        let LogState { written, .. } = self.logs.state.as_ref();
        *written.borrow()
    }

    /// Looks for the objects of the owner, if the last search is too old.
    async fn find_objects(&mut self) -> Result<bool> {
        if self
            .listed_at
            .is_some_and(|time| time.elapsed() < LIST_INTERVAL)
        {
            return Ok(false);
        }
        self.listed_at = Some(Instant::now());
        let (owner, name) = (self.query.owner.clone(), self.query.resource.clone());
        let objects = self.stores.run(move |data| match name {
            Some(name) => objects_named(data, &owner, &name),
            None => objects_of(data, &owner),
        });
        let objects = objects.await?;
        self.watch.set_objects(&objects);
        self.cursors.set_objects(objects);
        Ok(true)
    }
}

#[async_trait]
impl LogReader for LocalLogReader {
    async fn next(&mut self) -> Result<LogBatch, LogError> {
        let has_listed = self.find_objects().await?;
        // News is taken before the lines are read, so that lines written in between are news again.
        if !self.watch.take_news() && !has_listed {
            return Ok(LogBatch::default());
        }
        let (mut cursors, owner) = (self.cursors.clone(), self.query.owner.clone());
        let written = self.last_written_id();
        let read = self.stores.run(move |data| {
            let batch = cursors.read(data, &owner, written)?;
            Ok((cursors, batch))
        });
        let (cursors, batch) = read.await?;
        self.cursors = cursors;
        if batch.has_more {
            self.watch.set_news();
        }
        Ok(batch)
    }
}

impl Cursors {
    /// Keeps the positions of these objects, and adds the missing ones.
    fn set_objects(&mut self, objects: Vec<ResourceRef>) {
        let mut before = std::mem::take(&mut self.objects);
        for object in objects {
            let key = (object.resource_type.as_str(), object.name.clone());
            let cursor = before.remove(&key).unwrap_or(Cursor {
                object,
                position: None,
                last_number: None,
            });
            self.objects.insert(key, cursor);
        }
    }

    /// Returns the id after which the last `count` lines of all objects follow.
    fn id_before_tail(&self, data: &DataDir, count: u32, written: u64) -> Result<u64> {
        if count == 0 {
            return Ok(written);
        }
        let count = count as usize;
        let mut ids = BinaryHeap::with_capacity(count + 1);
        for cursor in self.objects.values() {
            for segment in segment::list(data, &cursor.object)? {
                let Some(file) = segment::open(data, &cursor.object, segment)? else {
                    continue;
                };
                let mut lines = LineReader::new(file, 0)?;
                while let Some(line) = lines.next()?.filter(|line| line.id <= written) {
                    ids.push(Reverse(line.id));
                    if ids.len() > count {
                        ids.pop();
                    }
                }
            }
        }
        let first = ids.peek().filter(|_| ids.len() == count);
        Ok(first.map_or(0, |Reverse(id)| id - 1))
    }

    /// Reads the next lines of all objects of the owner in the order of their ids, and moves the positions after them.
    /// Lines above `written` are not read.
    fn read(&mut self, data: &DataDir, owner: &str, written: u64) -> Result<LogBatch> {
        let mut streams = Vec::new();
        let mut next = BinaryHeap::new();
        for cursor in self.objects.values_mut() {
            if !is_owned(data, &cursor.object, owner)? {
                continue;
            }
            let mut stream = ObjectStream::open(data, cursor, self.after)?;
            if let Some(id) = stream.peek(data, written)? {
                next.push(Reverse((id, streams.len())));
            }
            streams.push(stream);
        }
        let mut batch = LogBatch::default();
        let mut bytes = 0;
        while let Some(Reverse((_, index))) = next.pop() {
            if batch.lines.len() >= MAX_BATCH_LINES || bytes >= MAX_BATCH_BYTES {
                batch.has_more = true;
                break;
            }
            let stream: &mut ObjectStream<'_> = &mut streams[index];
            for line in stream.take() {
                bytes += line.content.text_bytes();
                batch.lines.push(line);
            }
            if let Some(id) = stream.peek(data, written)? {
                next.push(Reverse((id, index)));
            }
        }
        Ok(batch)
    }
}

/// The next lines of one object.
struct ObjectStream<'a> {
    cursor: &'a mut Cursor,
    after: u64,
    /// The files after the open one, the last first.
    segments: Vec<u64>,
    open: Option<(u64, LineReader)>,
    /// The next line, and the place after it.
    next: Option<(StoredLine, FilePosition)>,
}

impl<'a> ObjectStream<'a> {
    fn open(data: &DataDir, cursor: &'a mut Cursor, after: u64) -> Result<Self> {
        let mut segments = segment::list(data, &cursor.object)?;
        // A deleted file is replaced by the first one that still exists.
        cursor.position = cursor
            .position
            .filter(|position| segments.binary_search(&position.segment).is_ok());
        if let Some(position) = cursor.position {
            segments.retain(|segment| *segment >= position.segment);
        }
        segments.reverse();
        Ok(Self {
            cursor,
            after,
            segments,
            open: None,
            next: None,
        })
    }

    /// Reads the next line, if it is written, and returns its id.
    fn peek(&mut self, data: &DataDir, written: u64) -> Result<Option<u64>> {
        loop {
            let Some((segment, reader)) = &mut self.open else {
                if !self.open_next(data)? {
                    return Ok(None);
                }
                continue;
            };
            let segment = *segment;
            let Some(line) = reader.next()? else {
                // The last file stays open for further lines.
                if self.segments.is_empty() || !self.open_next(data)? {
                    return Ok(None);
                }
                continue;
            };
            if line.id > written {
                return Ok(None);
            }
            let offset = reader.offset;
            let position = FilePosition { segment, offset };
            if line.id > self.after {
                let id = line.id;
                self.next = Some((line, position));
                return Ok(Some(id));
            }
            self.cursor.position = Some(position);
            self.cursor.last_number = Some(line.number);
        }
    }

    /// Opens the next file that exists. Returns `false` if there is none.
    fn open_next(&mut self, data: &DataDir) -> Result<bool> {
        while let Some(segment) = self.segments.pop() {
            let position = self
                .cursor
                .position
                .filter(|position| position.segment == segment);
            let offset = position.map_or(0, |position| position.offset);
            if let Some(file) = segment::open(data, &self.cursor.object, segment)? {
                self.open = Some((segment, LineReader::new(file, offset)?));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the line that was read, after a line that stands for omitted ones, and moves the position.
    fn take(&mut self) -> Vec<LogLine> {
        let Some((line, position)) = self.next.take() else {
            return Vec::new();
        };
        let cursor = &mut *self.cursor;
        let name = &cursor.object.name;
        let before = cursor.last_number.replace(line.number);
        cursor.position = Some(position);
        // The numbers of an object that was created again begin with 1.
        let omitted = before.map_or(0, |before| line.number.saturating_sub(before + 1));
        let mut lines = Vec::new();
        if omitted > 0 {
            lines.push(LogLine {
                id: LogId(line.id - 1),
                at: Timestamp::from_millis(line.at),
                resource: name.clone(),
                content: LogContent::omission(omitted),
            });
        }
        lines.push(line.into_line(name));
        lines
    }
}
