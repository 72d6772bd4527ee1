//! Formats events as lines of JSON. The format equals that of tracing-subscriber, but formatting is much cheaper: a log
//! entry for every request is a significant part of a request's cost.

use std::cell::RefCell;
use std::fmt::{self, Debug, Write};

use core_suite::{Clock as _, SystemClock};
use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing::{Event, Subscriber};
use tracing_log::NormalizeEvent;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

thread_local! {
    /// The buffer in which a line is composed, because every piece written to a [`Writer`] costs a call.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Writes the line that `compose` creates. An event that is logged while another one is composed gets its own buffer.
fn write_line(
    mut writer: Writer<'_>,
    compose: impl FnOnce(&mut String) -> fmt::Result,
) -> fmt::Result {
    let mut line = LINE.with(RefCell::take);
    line.clear();
    let written = compose(&mut line).and_then(|()| writer.write_str(&line));
    LINE.set(line);
    written
}

/// Formats an event as an object: `timestamp`, `level`, `fields`, `target`, and in a span `span` and `spans`, outermost
/// first.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonEvent;

impl<S, N> FormatEvent<S, N> for JsonEvent
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // Events of the crate `log` state their origin in their fields.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        write_line(writer, |line| {
            write!(line, "{{\"timestamp\":\"{}", SystemClock.now())?;
            line.push_str("\",\"level\":\"");
            line.push_str(metadata.level().as_str());
            line.push_str("\",\"fields\":{");
            write_fields(line, event)?;
            line.push_str("},\"target\":");
            write_text(line, metadata.target())?;
            let span = event.parent().and_then(|id| cx.span(id));
            if let Some(span) = span.or_else(|| cx.lookup_current()) {
                line.push_str(",\"span\":");
                write_span::<S, N>(line, &span)?;
                line.push_str(",\"spans\":[");
                for (at, span) in span.scope().from_root().enumerate() {
                    line.push_str(if at == 0 { "" } else { "," });
                    write_span::<S, N>(line, &span)?;
                }
                line.push(']');
            }
            line.push_str("}\n");
            Ok(())
        })
    }
}

fn write_span<S, N>(line: &mut String, span: &SpanRef<'_, S>) -> fmt::Result
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    line.push('{');
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<N>>();
    if let Some(fields) = fields.filter(|fields| !fields.is_empty()) {
        line.push_str(&fields.fields);
        line.push(',');
    }
    line.push_str("\"name\":");
    write_text(line, span.name())?;
    line.push('}');
    Ok(())
}

/// Formats the fields of a span as members of an object, without braces, because the span's name is added to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonMembers;

impl<'w> FormatFields<'w> for JsonMembers {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        write_line(writer, |line| write_fields(line, fields))
    }

    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        if !current.fields.is_empty() && !fields.is_empty() {
            current.fields.push(',');
        }
        self.format_fields(current.as_writer(), fields)
    }
}

fn write_fields(line: &mut String, fields: impl RecordFields) -> fmt::Result {
    let mut members = Members {
        line,
        any: false,
        written: Ok(()),
    };
    fields.record(&mut members);
    members.written
}

/// Writes fields as members of an object.
struct Members<'l> {
    line: &'l mut String,
    any: bool,
    written: fmt::Result,
}

impl Members<'_> {
    fn member(&mut self, field: &Field, value: impl FnOnce(&mut String) -> fmt::Result) {
        // The name of a raw identifier is written without its `r#`.
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        if self.written.is_err() {
            return;
        }
        if self.any {
            self.line.push(',');
        }
        self.any = true;
        let written = write_text(self.line, name);
        self.line.push(':');
        self.written = written.and_then(|()| value(self.line));
    }
}

impl Visit for Members<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.member(field, |line| write_number(line, value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field, |line| write!(line, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field, |line| write!(line, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field, |line| write!(line, "{value}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.member(field, |line| write_text(line, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.member(field, |line| {
            line.push('"');
            write!(JsonEscaper(line), "{value:?}")?;
            line.push('"');
            Ok(())
        });
    }
}

/// Writes a number. Most numbers have at most three decimals; they are formatted with integers, at a fifth of the cost.
fn write_number(line: &mut String, number: f64) -> fmt::Result {
    let thousandths = (number * 1_000.0).round();
    if number.is_sign_positive() && thousandths < 1e9 && thousandths / 1_000.0 == number {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to 1e9"
        )]
        let thousandths = thousandths as u32;
        let (whole, rest) = (thousandths / 1_000, thousandths % 1_000);
        return match rest {
            0 => write!(line, "{whole}.0"),
            _ => write!(line, "{whole}.{rest:03}"),
        };
    }
    match number.is_finite() {
        true => write!(line, "{number:?}"),
        false => line.write_str("null"),
    }
}

fn write_text(line: &mut String, text: &str) -> fmt::Result {
    line.push('"');
    JsonEscaper(line).write_str(text)?;
    line.push('"');
    Ok(())
}

/// Writes text with JSON string escapes, without the quotes.
struct JsonEscaper<'l>(&'l mut String);

impl Write for JsonEscaper<'_> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        let special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
        // Almost no text contains a special character, and checking all bytes without a branch is fastest.
        if !text.bytes().fold(false, |any, byte| any | special(byte)) {
            self.0.push_str(text);
            return Ok(());
        }
        while let Some(at) = text.bytes().position(special) {
            let (plain, rest) = text.split_at(at);
            self.0.push_str(plain);
            // All special characters are one byte long.
            let (escaped, rest) = rest.split_at(1);
            match escaped {
                "\"" => self.0.push_str("\\\""),
                "\\" => self.0.push_str("\\\\"),
                "\n" => self.0.push_str("\\n"),
                "\r" => self.0.push_str("\\r"),
                "\t" => self.0.push_str("\\t"),
                other => {
                    let code = other.bytes().next().unwrap_or_default();
                    write!(self.0, "\\u{code:04x}")?;
                }
            }
            text = rest;
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::Value;
    use tracing::subscriber::with_default;

    use super::*;

    /// An output that collects lines.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn read(&self) -> Vec<Value> {
            let bytes = self.0.lock().unwrap();
            let lines = std::str::from_utf8(&bytes).unwrap().lines();
            lines
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        }
    }

    /// Logs events of every kind.
    fn log() {
        let nothing: Option<u64> = None;
        tracing::info!(status = 200_u16, below = -5_i64, ratio = 0.0237_f64, "done");
        tracing::info!(
            a = 17.25_f64,
            b = -3.5_f64,
            c = 1e300_f64,
            d = 1e-9_f64,
            e = -0.0_f64,
            f = 4.0_f64,
            g = 0.001_f64
        );
        tracing::warn!(target: "else::where", ok = true, absent = nothing, large = u128::MAX);
        tracing::error!(
            not_a_number = f64::NAN,
            r#type = "keyword",
            "no \"{}\"",
            "entry"
        );
        tracing::info!(
            text = "quote \" slash \\ line \n\r\t bell \u{7} ünïcödé \u{1F600}",
            debug = ?vec!["a\nb", "\"c\""],
            error = &io::Error::other("broken\tpipe") as &dyn std::error::Error,
        );
        let from_log = tracing_log::log::Record::builder()
            .args(format_args!("from the crate `log`"))
            .level(tracing_log::log::Level::Warn)
            .target("other::crate")
            .module_path(Some("other::crate::module"))
            .build();
        tracing_log::format_trace(&from_log).unwrap();
        let outer = tracing::info_span!(
            "outer",
            id = 1,
            name = "has a name",
            late = tracing::field::Empty
        );
        let _entered = outer.enter();
        tracing::info!("in a span");
        outer.record("late", "said \"later\"");
        let inner = tracing::info_span!("inner");
        inner.in_scope(|| tracing::info!(depth = 2, "in two spans"));
        tracing::info!(parent: None, "in none");
    }

    fn without_time(mut line: Value) -> Value {
        let time = line.as_object_mut().unwrap().remove("timestamp").unwrap();
        let time = time.as_str().unwrap();
        let digits = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
        assert_eq!(digits(&time[..20]), "0000-00-00T00:00:00.", "{time}");
        line
    }

    #[test]
    fn a_line_equals_the_json_format_of_tracing_subscriber() {
        let (ours, theirs) = (Lines::default(), Lines::default());
        let (to_ours, to_theirs) = (ours.clone(), theirs.clone());
        let subscriber = tracing_subscriber::fmt()
            .event_format(JsonEvent)
            .fmt_fields(JsonMembers)
            .with_writer(move || to_ours.clone());
        with_default(subscriber.finish(), log);
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_writer(move || to_theirs.clone());
        with_default(subscriber.finish(), log);
        let (ours, theirs) = (ours.read(), theirs.read());
        assert_eq!(ours.len(), 9);
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            assert_eq!(without_time(ours), without_time(theirs));
        }
    }
}
