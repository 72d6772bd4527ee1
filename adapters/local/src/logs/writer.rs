//! The task that writes the waiting lines to the files.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Weak};

use core_domain::port::{Cause, ResourceRef};

use super::queue::{LogQueue, ObjectLines, TakenLines, WaitingLine};
use super::segment::{self, LOCK, SegmentEnd, StoredLine};
use super::state::LogState;
use crate::data_dir::DataDir;
use crate::error::{LocalError, Result, run_blocking};
use crate::manifest::Manifest;

/// Number of files of an object that are kept.
const MAX_SEGMENTS: usize = 2;
/// Maximum number of objects whose ends of files are cached.
const MAX_CACHED: usize = 1_024;

/// Writes lines until the queue is closed and empty. Lines are lost if the data folder was closed before.
pub(super) async fn write_lines(
    queue: Arc<LogQueue>,
    state: Arc<LogState>,
    data: Weak<DataDir>,
    max_lines: usize,
) {
    let mut writer = LogWriter {
        max_lines,
        ends: HashMap::new(),
    };
    while let Some(TakenLines { objects, last_id }) = queue.take().await {
        let Some(data) = data.upgrade() else {
            return;
        };
        let work = run_blocking(move || {
            let mut last_id = last_id;
            let written = writer.write(&data, objects, &mut last_id);
            Ok((writer, written, last_id))
        });
        let (next, written, last_id) = match work.await {
            Ok(done) => done,
            Err(error) => {
                let cause = Cause::new(error);
                tracing::error!(%cause, "writing logs panicked; no more lines are written");
                return;
            }
        };
        writer = next;
        state.publish(last_id, &written);
    }
}

/// Appends lines to the files of objects.
#[derive(Debug)]
struct LogWriter {
    /// Maximum number of lines in a file.
    max_lines: usize,
    /// The ends of the last files, by object.
    ends: HashMap<ResourceRef, LogEnd>,
}

/// The end of an object's log.
#[derive(Clone, Copy, Debug)]
struct LogEnd {
    /// The last file, by the id of its first line; `None` if there is no file.
    segment: Option<u64>,
    end: SegmentEnd,
}

impl LogWriter {
    /// Writes the lines of each object. Returns the objects that have new lines. Raises `last_id` to the highest id.
    fn write(
        &mut self,
        data: &DataDir,
        objects: HashMap<ResourceRef, ObjectLines>,
        last_id: &mut u64,
    ) -> Vec<ResourceRef> {
        let mut written = Vec::new();
        for (object, lines) in objects {
            match self.append(data, &object, lines.lines) {
                Ok(Some(id)) => {
                    *last_id = id.max(*last_id);
                    written.push(object);
                }
                Ok(None) => drop(self.ends.remove(&object)),
                Err(error) => {
                    self.ends.remove(&object);
                    let cause = Cause::new(error);
                    tracing::warn!(%cause, resource = object.name, "log lines could not be written");
                }
            }
        }
        written
    }

    /// Appends lines to the log of an object. Returns the id of the last one; `None` if the object does not exist.
    ///
    /// An id that is not above the last one in the file is replaced. Another process has then written to the log.
    fn append(
        &mut self,
        data: &DataDir,
        object: &ResourceRef,
        lines: Vec<WaitingLine>,
    ) -> Result<Option<u64>> {
        if !Manifest::exists(data, object.resource_type, &object.name)? {
            return Ok(None);
        }
        let [kind, name, folder] = segment::folder(object);
        match data.ensure_dir(&[kind, name, folder]) {
            Err(LocalError::Io(error)) if crate::data_dir::is_absence(&error) => return Ok(None),
            folder => folder?,
        };
        let Some(_lock) = data.lock_exclusive(&[kind, name, folder, LOCK])? else {
            return Ok(None);
        };
        let mut log = self.end_of(data, object)?;
        let mut buffer = Vec::new();
        let mut target = log.segment;
        for line in lines {
            let id = line.id.max(log.end.last_id + 1);
            let is_new = target.is_none() || log.end.lines >= self.max_lines.max(1);
            if is_new {
                append_to(data, object, target, &buffer)?;
                buffer.clear();
                target = Some(id);
                log.end.lines = 0;
                log.end.length = 0;
            } else if std::mem::take(&mut log.end.is_torn) {
                buffer.push(b'\n');
            }
            log.end.is_torn = false;
            log.end.last_id = id;
            log.end.last_number += 1;
            log.end.lines += 1;
            let stored = StoredLine {
                id,
                number: log.end.last_number,
                at: line.at.millis(),
                content: line.content,
            };
            stored.write(&mut buffer)?;
        }
        log.end.length = append_to(data, object, target, &buffer)?;
        if log.segment != target {
            remove_old(data, object)?;
        }
        log.segment = target;
        if self.ends.len() >= MAX_CACHED {
            self.ends.clear();
        }
        self.ends.insert(object.clone(), log);
        Ok(Some(log.end.last_id))
    }

    /// Returns the end of an object's log: from the cache if the file is unchanged, otherwise from the files.
    fn end_of(&self, data: &DataDir, object: &ResourceRef) -> Result<LogEnd> {
        let segments = segment::list(data, object)?;
        let Some(&last) = segments.last() else {
            let end = SegmentEnd::default();
            return Ok(LogEnd { segment: None, end });
        };
        let mut end = match segment::open(data, object, last)? {
            Some(file) => match self.ends.get(object) {
                Some(cached) if cached.is_end(last, &file)? => return Ok(*cached),
                _ => segment::read_end(file)?,
            },
            None => SegmentEnd::default(),
        };
        // The last file can be without a complete line.
        if end.last_id == 0
            && let Some(previous) = segments.iter().rev().nth(1)
            && let Some(file) = segment::open(data, object, *previous)?
        {
            let previous = segment::read_end(file)?;
            (end.last_id, end.last_number) = (previous.last_id, previous.last_number);
        }
        Ok(LogEnd {
            segment: Some(last),
            end,
        })
    }
}

impl LogEnd {
    fn is_end(&self, segment: u64, file: &File) -> Result<bool> {
        Ok(self.segment == Some(segment) && file.metadata()?.len() == self.end.length)
    }
}

/// Appends bytes to a file. Returns its length.
fn append_to(
    data: &DataDir,
    object: &ResourceRef,
    segment: Option<u64>,
    bytes: &[u8],
) -> Result<u64> {
    let Some(segment) = segment.filter(|_| !bytes.is_empty()) else {
        return Ok(0);
    };
    let [kind, name, folder] = segment::folder(object);
    let mut file = data.append_file(&[kind, name, folder, &segment::file_name(segment)])?;
    file.write_all(bytes)?;
    Ok(file.metadata()?.len())
}

/// Deletes all files of a log except the last ones.
fn remove_old(data: &DataDir, object: &ResourceRef) -> Result<()> {
    let [kind, name, folder] = segment::folder(object);
    let segments = segment::list(data, object)?;
    for old in &segments[..segments.len().saturating_sub(MAX_SEGMENTS)] {
        data.remove_file(&[kind, name, folder, &segment::file_name(*old)])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use core_domain::cli::{LogContent, LogLevel};
    use core_domain::kernel::Timestamp;
    use core_domain::registry::ResourceType;

    use super::*;

    struct Folder {
        data: DataDir,
        object: ResourceRef,
        _folder: tempfile::TempDir,
    }

    fn folder() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        data.ensure_dir(&["worker"]).unwrap();
        data.ensure_dir(&["worker", "acme-api"]).unwrap();
        data.replace_file(&["worker", "acme-api", "manifest.json"], &[b"{}"])
            .unwrap();
        let object = ResourceRef {
            resource_type: ResourceType::Worker,
            name: "acme-api".to_owned(),
        };
        Folder {
            data,
            object,
            _folder: folder,
        }
    }

    fn writer() -> LogWriter {
        LogWriter {
            max_lines: 3,
            ends: HashMap::new(),
        }
    }

    fn lines(ids: impl IntoIterator<Item = u64>) -> Vec<WaitingLine> {
        let line = |id| WaitingLine {
            id,
            at: Timestamp::from_millis(1),
            content: LogContent::console(LogLevel::Log, "text"),
        };
        ids.into_iter().map(line).collect()
    }

    /// Returns the ids and the numbers of the lines of each file.
    fn stored_ids(folder: &Folder) -> Vec<Vec<(u64, u64)>> {
        let Folder { data, object, .. } = folder;
        let segments = segment::list(data, object).unwrap();
        let lines = |segment| {
            let file = segment::open(data, object, segment).unwrap().unwrap();
            let mut reader = segment::LineReader::new(file, 0).unwrap();
            let lines = std::iter::from_fn(|| reader.next().unwrap());
            lines.map(|line| (line.id, line.number)).collect()
        };
        segments.into_iter().map(lines).collect()
    }

    #[test]
    fn last_two_files_are_kept_and_numbers_continue() {
        let folder = folder();
        let mut writer = writer();
        let mut append = |ids: std::ops::Range<u64>| {
            let written = writer.append(&folder.data, &folder.object, lines(ids));
            assert!(written.unwrap().is_some());
        };
        append(10..12);
        assert_eq!(stored_ids(&folder), [[(10, 1), (11, 2)]]);
        append(12..15);
        append(15..19);
        let wanted = [
            vec![(13, 4), (14, 5), (15, 6)],
            vec![(16, 7), (17, 8), (18, 9)],
        ];
        assert_eq!(stored_ids(&folder), wanted);
        append(19..20);
        assert_eq!(stored_ids(&folder), [wanted[1].clone(), vec![(19, 10)]]);
    }

    #[test]
    fn another_writer_continues_after_the_last_complete_line() {
        let folder = folder();
        let Folder { data, object, .. } = &folder;
        writer().append(data, object, lines([10, 11])).unwrap();
        let file = ["worker", "acme-api", "logs", &segment::file_name(10)];
        let mut torn = data.append_file(&file).unwrap();
        torn.write_all(b"{\"id\":12,\"number\":3,\"at").unwrap();
        // The clock was set back, so the ids of the next lines are smaller.
        let mut next = writer();
        next.append(data, object, lines([1, 2])).unwrap();
        next.append(data, object, lines([3])).unwrap();
        let wanted = [vec![(10, 1), (11, 2), (12, 3)], vec![(13, 4), (14, 5)]];
        assert_eq!(stored_ids(&folder), wanted);
        assert_eq!(segment::last_id(data, object).unwrap(), 14);
    }

    #[test]
    fn lines_of_missing_objects_are_not_written() {
        let folder = folder();
        let missing = ResourceRef {
            name: "acme-none".to_owned(),
            ..folder.object.clone()
        };
        let written = writer().append(&folder.data, &missing, lines([1]));
        assert_eq!(written.unwrap(), None);
        assert!(!folder.data.path(&["worker", "acme-none"]).unwrap().exists());
    }
}
