//! The parser of server-sent events (HTML Living Standard, section "Interpreting an event stream").

use std::time::Duration;

/// Maximum size of one event in bytes. A longer one ends the stream with an error.
pub(crate) const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The name of the event; `message` if it has none.
    pub(crate) name: String,
    /// The lines of data, joined by line feeds.
    pub(crate) data: String,
}

/// An event is longer than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {MAX_EVENT_BYTES} bytes")]
pub(crate) struct TooLongEvent;

/// Parses a stream of bytes into events. Lines end with LF, CR or both.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    has_read_line: bool,
    after_cr: bool,
    name: String,
    data: String,
    last_id: String,
    id: Option<String>,
    retry: Option<Duration>,
}

impl SseParser {
    /// Creates a parser of a resumed stream.
    pub(crate) fn new(last_id: String) -> Self {
        Self {
            id: Some(last_id.clone()).filter(|id| !id.is_empty()),
            last_id,
            ..Self::default()
        }
    }

    /// Keeps the time to reconnect of an earlier connection.
    pub(crate) fn with_retry(mut self, retry: Option<Duration>) -> Self {
        self.retry = retry;
        self
    }

    /// Returns the id of the last event, for `Last-Event-ID`; empty if there was none.
    pub(crate) fn last_id(&self) -> &str {
        &self.last_id
    }

    /// Returns the time after which the server wants clients to reconnect, if it stated one.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Parses the next bytes. Returns the events that they complete.
    ///
    /// # Errors
    /// [`TooLongEvent`] if an event exceeds its maximum size.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TooLongEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            let is_second = std::mem::take(&mut self.after_cr) && byte == b'\n';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    events.extend(self.end_line());
                }
                _ => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
                return Err(TooLongEvent);
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        // A byte order mark may precede the stream.
        let is_first = !std::mem::replace(&mut self.has_read_line, true);
        let line = match line.strip_prefix('\u{feff}') {
            Some(line) if is_first => line,
            _ => &line,
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        self.set_field(field, value.strip_prefix(' ').unwrap_or(value));
        None
    }

    fn set_field(&mut self, field: &str, value: &str) {
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry = value.parse().ok().map(Duration::from_millis);
            }
            // A comment has an empty field name; unknown fields are ignored.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        if let Some(id) = &self.id {
            self.last_id.clone_from(id);
        }
        let name = std::mem::take(&mut self.name);
        let mut data = std::mem::take(&mut self.data);
        data.pop()?;
        Some(SseEvent {
            name: if name.is_empty() {
                "message".to_owned()
            } else {
                name
            },
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Vec<SseEvent>, SseParser) {
        let mut parser = SseParser::default();
        let events = parser.push(text.as_bytes()).unwrap();
        (events, parser)
    }

    fn data(text: &str) -> Vec<String> {
        parse(text).0.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn the_examples_of_the_standard_are_parsed() {
        assert_eq!(data("data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
        let text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        assert_eq!(data(text), ["first event", "second event", " third event"]);
        assert_eq!(data("data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
        assert_eq!(data("data:test\n\ndata: test\n\n"), ["test", "test"]);
    }

    #[test]
    fn every_ending_of_a_line_is_accepted() {
        assert_eq!(
            data("data: a\r\rdata: b\r\n\r\ndata: c\n\n"),
            ["a", "b", "c"]
        );
    }

    #[test]
    fn bytes_may_arrive_one_by_one() {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for byte in "\u{feff}event: \u{e4}\r\nid: 7\r\ndata: {\"a\":1}\r\n\r\n".bytes() {
            events.extend(parser.push(&[byte]).unwrap());
        }
        assert_eq!(events[0].name, "\u{e4}");
        assert_eq!((events[0].data.as_str(), events.len()), ("{\"a\":1}", 1));
        assert_eq!(parser.last_id(), "7");
    }

    #[test]
    fn an_id_counts_with_the_blank_line_after_it() {
        let (events, parser) = parse("id: 4\ndata: x\n\nid: 5\ndata: y\n");
        assert_eq!(events.len(), 1);
        assert_eq!(parser.last_id(), "4");
    }

    #[test]
    fn an_id_with_a_null_character_is_ignored() {
        assert_eq!(parse("id: 4\n\nid: 5\0\ndata: x\n\n").1.last_id(), "4");
    }

    #[test]
    fn only_digits_set_the_time_to_reconnect() {
        let retry = |text| parse(text).1.retry();
        assert_eq!(retry("retry: 1500\n"), Some(Duration::from_millis(1500)));
        assert_eq!(retry("retry: 1.5\n"), None);
        assert_eq!(retry("retry\n"), None);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = SseParser::default();
        let line = vec![b'x'; MAX_EVENT_BYTES + 1];
        assert_eq!(parser.push(&line), Err(TooLongEvent));
    }
}
