//! Splits a file into rows: one per line, or the elements of one JSON array.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// Receives the line at which a row starts, and the row's text or an error. Returns whether to read on.
pub(super) type RowHandler<'a> = &'a mut dyn FnMut(u64, Result<&str, String>) -> bool;

/// Reads all rows.
///
/// # Errors
/// The source cannot be read.
pub(super) fn read(mut source: impl BufRead, take: RowHandler<'_>) -> io::Result<()> {
    let (line, first) = first_byte(&mut source)?;
    match first {
        None => Ok(()),
        Some(b'[') => read_array(source, line, take),
        Some(_) => read_lines(source, line, take),
    }
}

/// Returns the first byte that is not white space or a byte order mark, and its line. The byte is not consumed.
fn first_byte(source: &mut impl BufRead) -> io::Result<(u64, Option<u8>)> {
    const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
    let mut line = 1;
    loop {
        let Some(byte) = source.fill_buf()?.first().copied() else {
            return Ok((line, None));
        };
        if !byte.is_ascii_whitespace() && !BYTE_ORDER_MARK.contains(&byte) {
            return Ok((line, Some(byte)));
        }
        line += u64::from(byte == b'\n');
        source.consume(1);
    }
}

fn read_lines(mut source: impl BufRead, mut line: u64, take: RowHandler<'_>) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = source
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(());
        }
        let ended = bytes.ends_with(b"\n");
        let wanted = if !ended && read as u64 == MAX_LINE_BYTES {
            source.skip_until(b'\n')?;
            take(line, Err("is longer than 1 MiB".to_owned()))
        } else {
            match str::from_utf8(&bytes).map(str::trim) {
                Ok("") => true,
                Ok(text) => take(line, Ok(text)),
                Err(_) => take(line, Err("is not valid UTF-8".to_owned())),
            }
        };
        if !wanted {
            return Ok(());
        }
        line += 1;
    }
}

fn read_array(source: impl BufRead, line: u64, take: RowHandler<'_>) -> io::Result<()> {
    let lines = Rc::new(Cell::new(line));
    let counted = LineCounter {
        source,
        lines: Rc::clone(&lines),
    };
    let mut deserializer = serde_json::Deserializer::from_reader(counted);
    let elements = Elements {
        lines: &lines,
        take: &mut *take,
    };
    let read = (&mut deserializer).deserialize_seq(elements);
    let all = read.and_then(|wanted| if wanted { deserializer.end() } else { Ok(()) });
    match all {
        Err(error) if error.is_io() => Err(error.into()),
        Err(error) => {
            let text = error.to_string();
            let end = text.find(" at line ").unwrap_or(text.len());
            let problem = format!(
                "is not valid JSON: {}; the rest of the file was not read",
                &text[..end]
            );
            take(lines.get(), Err(problem));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Counts the lines that the JSON parser has read. The parser reads byte by byte and does not read ahead.
struct LineCounter<R> {
    source: R,
    lines: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for LineCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let ends = buffer.iter().take(read).filter(|byte| **byte == b'\n');
        self.lines.set(self.lines.get() + ends.count() as u64);
        Ok(read)
    }
}

struct Elements<'a, 'b> {
    lines: &'a Cell<u64>,
    take: RowHandler<'b>,
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    /// Whether the taker accepted all elements.
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of users")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<bool, A::Error> {
        while let Some(element) = elements.next_element::<Box<RawValue>>()? {
            let text = element.get();
            let ends = text.bytes().filter(|byte| *byte == b'\n').count() as u64;
            let wanted = (self.take)(self.lines.get().saturating_sub(ends), Ok(text));
            if !wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let mut rows = Vec::new();
        read(text, &mut |line, row| {
            rows.push((line, row.map(str::to_owned)));
            true
        })
        .unwrap();
        rows
    }

    fn good(line: u64, text: &str) -> (u64, Result<String, String>) {
        (line, Ok(text.to_owned()))
    }

    #[test]
    fn rows_are_lines_or_array_elements_and_have_their_line_numbers() {
        let lines = "\u{feff}\n{\"a\":1}\n\n  nonsense\r\n{\"b\":2}";
        assert_eq!(
            rows(lines.as_bytes()),
            [
                good(2, "{\"a\":1}"),
                good(4, "nonsense"),
                good(5, "{\"b\":2}")
            ]
        );
        let array = "\n[\n  {\n\"a\": 1\n},\n 2, {}]\n";
        assert_eq!(
            rows(array.as_bytes()),
            [good(3, "{\n\"a\": 1\n}"), good(6, "2"), good(6, "{}")]
        );
        assert!(rows(b"").is_empty() && rows(b" \n").is_empty() && rows(b"[]").is_empty());
    }

    #[test]
    fn an_unreadable_line_is_reported_and_the_lines_around_it_are_read() {
        let mut text = b"{}\n".to_vec();
        text.extend(vec![b'x'; 2 * 1024 * 1024]);
        text.extend(b"\n\xff\n{}");
        let rows_of_text = rows(&text);
        let told: Vec<(u64, bool)> = rows_of_text
            .iter()
            .map(|(n, row)| (*n, row.is_ok()))
            .collect();
        assert_eq!(told, [(1, true), (2, false), (3, false), (4, true)]);
        for (text, line) in [("[{},\n{},\n}]", 3), ("[{}", 1), ("[{}]\n\nx", 3)] {
            let rows = rows(text.as_bytes());
            let (at, problem) = rows.last().unwrap();
            assert_eq!(*at, line, "{text}");
            assert!(
                problem
                    .as_ref()
                    .unwrap_err()
                    .starts_with("is not valid JSON: ")
            );
        }
    }
}
