//! The files of an object's log: `{type}/{name}/logs/{id of the first line}.jsonl`, one JSON object per line. Files are
//! only appended to. When a file has the maximum number of lines, a new one is begun, and only the last two are kept.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use core_domain::cli::{LogContent, LogId, LogLine};
use core_domain::kernel::Timestamp;
use core_domain::port::ResourceRef;
use serde::{Deserialize, Serialize};

use crate::data_dir::DataDir;
use crate::error::Result;

/// The folder of the log inside the folder of the object.
pub(super) const FOLDER: &str = "logs";
/// The lock that a writer holds.
pub(super) const LOCK: &str = ".lock";
/// The extension of the files.
const EXTENSION: &str = ".jsonl";
/// Maximum length of a line in a file, in bytes. Escapes at most double the length of the texts.
const MAX_STORED_BYTES: usize = 32 * 1024;

/// A line in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredLine {
    /// The position of the line among the lines of all objects. It grows with every line of a file.
    pub(super) id: u64,
    /// The number of the line in the log of the object; the first line has the number 1.
    pub(super) number: u64,
    /// The time, in milliseconds since the Unix epoch.
    pub(super) at: i64,
    #[serde(flatten)]
    pub(super) content: LogContent,
}

impl StoredLine {
    /// Appends the line to a buffer.
    pub(super) fn write(&self, buffer: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(&mut *buffer, self).map_err(io::Error::from)?;
        buffer.push(b'\n');
        Ok(())
    }

    pub(super) fn into_line(self, resource: &str) -> LogLine {
        LogLine {
            id: LogId(self.id),
            at: Timestamp::from_millis(self.at),
            resource: resource.to_owned(),
            content: self.content,
        }
    }
}

/// The place of a line: its file and its offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FilePosition {
    /// The id of the first line of the file.
    pub(super) segment: u64,
    /// The offset in the file, in bytes.
    pub(super) offset: u64,
}

/// Returns the path of the log folder of an object, as parts.
pub(super) fn folder(object: &ResourceRef) -> [&str; 3] {
    [object.resource_type.as_str(), &object.name, FOLDER]
}

/// Returns the name of the file whose first line has this id.
pub(super) fn file_name(segment: u64) -> String {
    format!("{segment:020}{EXTENSION}")
}

/// Returns the files of an object's log in their order, each by the id of its first line. Returns an empty list if the
/// object has no log.
pub(super) fn list(data: &DataDir, object: &ResourceRef) -> Result<Vec<u64>> {
    let names = data.list(&folder(object))?;
    let ids = names.iter().filter_map(|name| {
        let digits = name.strip_suffix(EXTENSION)?;
        digits.parse().ok().filter(|id| file_name(*id) == *name)
    });
    let mut segments: Vec<u64> = ids.collect();
    segments.sort_unstable();
    Ok(segments)
}

/// Opens a file of a log. Returns `None` if it was deleted.
pub(super) fn open(data: &DataDir, object: &ResourceRef, segment: u64) -> Result<Option<File>> {
    let [kind, name, folder] = folder(object);
    data.open_file(&[kind, name, folder, &file_name(segment)])
}

/// Reads the lines of a file from an offset. Its memory does not depend on the file.
#[derive(Debug)]
pub(super) struct LineReader {
    input: BufReader<File>,
    /// The offset after the last line that was read, in bytes.
    pub(super) offset: u64,
    buffer: Vec<u8>,
}

impl LineReader {
    pub(super) fn new(mut file: File, offset: u64) -> Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self {
            input: BufReader::new(file),
            offset,
            buffer: Vec::new(),
        })
    }

    /// Returns the next line. Skips damaged lines. Returns `None` at the end, and at a last line that is not yet
    /// completely written.
    pub(super) fn next(&mut self) -> Result<Option<StoredLine>> {
        while let Some(length) = self.read_line()? {
            self.offset += length;
            if let Ok(line) = serde_json::from_slice(&self.buffer) {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Reads a complete line into the buffer, without the bytes above the maximum. Returns its length; `None` if there
    /// is no complete line.
    fn read_line(&mut self) -> io::Result<Option<u64>> {
        self.buffer.clear();
        let mut length = 0;
        loop {
            let room = MAX_STORED_BYTES.saturating_sub(self.buffer.len());
            let available = self.input.fill_buf()?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |end| end + 1);
            self.buffer.extend_from_slice(&available[..used.min(room)]);
            self.input.consume(used);
            length += used as u64;
            if end.is_some() {
                return Ok(Some(length));
            }
        }
    }
}

/// The state of a file that a writer continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentEnd {
    /// Number of complete lines.
    pub(super) lines: usize,
    /// The id of the last line; 0 if there is none.
    pub(super) last_id: u64,
    /// The number of the last line; 0 if there is none.
    pub(super) last_number: u64,
    /// The length of the file in bytes.
    pub(super) length: u64,
    /// `true` if the last line is incomplete, because a process was killed while it wrote.
    pub(super) is_torn: bool,
}

/// Reads a whole file to find its end.
pub(super) fn read_end(file: File) -> Result<SegmentEnd> {
    let length = file.metadata()?.len();
    let mut end = SegmentEnd {
        length,
        ..SegmentEnd::default()
    };
    let mut reader = LineReader::new(file, 0)?;
    while let Some(line) = reader.next()? {
        end.lines += 1;
        (end.last_id, end.last_number) = (line.id, line.number);
    }
    end.is_torn = reader.offset < length;
    Ok(end)
}

/// Returns the id of the last complete line of an object's log without reading all of it; 0 if it has none.
pub(super) fn last_id(data: &DataDir, object: &ResourceRef) -> Result<u64> {
    let Some(&segment) = list(data, object)?.last() else {
        return Ok(0);
    };
    let Some(mut file) = open(data, object, segment)? else {
        return Ok(segment);
    };
    let end = 2 * MAX_STORED_BYTES as u64;
    let start = file.metadata()?.len().saturating_sub(end);
    file.seek(SeekFrom::Start(start))?;
    let mut content = Vec::new();
    file.take(end).read_to_end(&mut content)?;
    let mut lines = content.split(|byte| *byte == b'\n').rev();
    let last = lines.find_map(|line| serde_json::from_slice::<StoredLine>(line).ok());
    Ok(last.map_or(segment, |line| line.id))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use core_domain::cli::LogLevel;

    use super::*;

    fn line(id: u64, text: &str) -> StoredLine {
        StoredLine {
            id,
            number: id,
            at: 7,
            content: LogContent::console(LogLevel::Warn, text),
        }
    }

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    fn read(file: File) -> Vec<u64> {
        let mut reader = LineReader::new(file, 0).unwrap();
        let lines = std::iter::from_fn(|| reader.next().unwrap());
        lines.map(|line| line.id).collect()
    }

    #[test]
    fn longest_lines_are_read_as_written() {
        let text = "\"\\".repeat(core_domain::cli::MAX_LOG_TEXT_BYTES / 2);
        let mut content = Vec::new();
        line(1, &text).write(&mut content).unwrap();
        let mut reader = LineReader::new(file(&content), 0).unwrap();
        assert_eq!(reader.next().unwrap(), Some(line(1, &text)));
        assert_eq!(reader.offset, content.len() as u64);
    }

    #[test]
    fn torn_and_damaged_lines_are_skipped() {
        let mut content = Vec::new();
        line(1, "a").write(&mut content).unwrap();
        content.extend_from_slice(b"{\"id\":2,\"nu\n\xff\xfe\n\n");
        content.extend_from_slice(&[b'x'; 3 * MAX_STORED_BYTES]);
        content.push(b'\n');
        line(3, "c").write(&mut content).unwrap();
        assert_eq!(read(file(&content)), [1, 3]);
        let end = read_end(file(&content)).unwrap();
        assert_eq!((end.lines, end.last_id, end.is_torn), (2, 3, false));

        line(4, "d").write(&mut content).unwrap();
        for torn in 2..40 {
            let torn = &content[..content.len() - torn];
            assert_eq!(read(file(torn)), [1, 3]);
            assert!(read_end(file(torn)).unwrap().is_torn);
        }
    }
}
