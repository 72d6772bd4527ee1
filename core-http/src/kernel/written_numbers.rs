//! The numbers of a JSON text as they are written. Whoever parses the text is told their values alone.

use std::cell::Cell;

/// Goes through the numbers of a JSON text in the order in which they stand in it. Of a text that is no JSON, up to where it
/// stops being some.
pub(super) struct WrittenNumbers<'t> {
    text: &'t [u8],
    at: Cell<usize>,
}

impl<'t> WrittenNumbers<'t> {
    pub(super) const fn of(text: &'t [u8]) -> Self {
        Self {
            text,
            at: Cell::new(0),
        }
    }

    /// The next one.
    pub(super) fn next(&self) -> Option<&'t str> {
        let mut at = self.at.get();
        loop {
            match self.text.get(at)? {
                b'"' => at = self.end_of_string(at),
                b'-' | b'0'..=b'9' => break,
                _ => at += 1,
            }
        }
        let rest = self.text.get(at..)?;
        let end = rest.iter().position(|byte| !is_of_number(*byte));
        let number = rest.get(..end.unwrap_or(rest.len()))?;
        self.at.set(at + number.len());
        std::str::from_utf8(number).ok()
    }

    /// Where the text goes on after the string that begins here.
    fn end_of_string(&self, start: usize) -> usize {
        let mut at = start + 1;
        loop {
            match self.text.get(at) {
                Some(b'\\') => at += 2,
                Some(b'"') | None => return at + 1,
                Some(_) => at += 1,
            }
        }
    }
}

const fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}
