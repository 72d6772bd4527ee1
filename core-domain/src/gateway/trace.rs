//! The trace of a request (W3C trace context), and the check of request ids.

use std::fmt;

use crate::kernel::{Entropy, hex, push_hex};

/// The position of the trace id in a `traceparent`.
const TRACE_ID: std::ops::Range<usize> = 3..35;

/// The position of the span id in a `traceparent`.
const SPAN_ID: std::ops::Range<usize> = 36..52;

/// The position of the flags in a `traceparent`.
const FLAGS: std::ops::Range<usize> = 53..55;

/// The bit of the flags that says whether the trace is sampled.
const SAMPLED: u8 = 1;

/// An id of a trace or of a span: bytes that are not all zero. Its text is lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TracingId<const BYTES: usize>([u8; BYTES]);

/// The id of a trace: 16 bytes, 32 digits.
pub type TraceId = TracingId<16>;

/// The id of a span: 8 bytes, 16 digits.
pub type SpanId = TracingId<8>;

impl<const BYTES: usize> TracingId<BYTES> {
    /// Parses the text of an id. Returns `None` if it is malformed or all zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let digits = text.as_bytes();
        if digits.len() != 2 * BYTES {
            return None;
        }
        let mut id = [0; BYTES];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        id.iter().any(|byte| *byte != 0).then_some(Self(id))
    }

    /// Creates a random id.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut id = [0; BYTES];
        entropy.fill(&mut id);
        if id.iter().all(|byte| *byte == 0) {
            id[0] = 1;
        }
        Self(id)
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; BYTES] {
        self.0
    }
}

impl<const BYTES: usize> fmt::Display for TracingId<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// The parsed `traceparent` of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traceparent {
    trace_id: TraceId,
    parent_id: SpanId,
    is_sampled: bool,
}

impl Traceparent {
    /// Parses a `traceparent` of version 00. Returns `None` if it is malformed.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace_id, parent_id, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_complete = parts.next().is_none() && version == "00" && flags.len() == 2;
        let digits = flags.bytes().all(|byte| byte.is_ascii_hexdigit());
        let flags = u8::from_str_radix(flags, 16).ok().filter(|_| digits)?;
        is_complete.then_some(Self {
            trace_id: TraceId::parse(trace_id)?,
            parent_id: SpanId::parse(parent_id)?,
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

/// The trace that a request belongs to, and the span of this process in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The `traceparent` for the upstream. It contains the trace id and the span id.
    traceparent: String,
    trace_id: TraceId,
    span_id: SpanId,
    parent_id: Option<SpanId>,
    is_parent_sampled: Option<bool>,
    /// Whether the client started the trace. The client's `tracestate` is forwarded only in this case.
    pub is_continued: bool,
}

impl TraceContext {
    /// Continues the trace of a client's `traceparent`, or starts a new one if it is missing or malformed. The trace is
    /// sampled, unless [`Self::with_sampling`] changes that: the client's flag neither forces nor suppresses tracing.
    #[must_use]
    pub fn begin(traceparent: Option<&str>, entropy: &dyn Entropy) -> Self {
        let continued = traceparent.and_then(Traceparent::parse);
        let trace_id = match continued {
            Some(parent) => parent.trace_id,
            None => TraceId::generate(entropy),
        };
        let context = Self::new(trace_id, SpanId::generate(entropy));
        Self {
            parent_id: continued.map(|parent| parent.parent_id),
            is_parent_sampled: continued.map(|parent| parent.is_sampled),
            is_continued: continued.is_some(),
            ..context
        }
    }

    /// Creates the context of a sampled span without a parent.
    #[must_use]
    pub fn new(trace_id: TraceId, span_id: SpanId) -> Self {
        let mut text = String::with_capacity(FLAGS.end);
        text.push_str("00-");
        push_hex(&mut text, &trace_id.0);
        text.push('-');
        push_hex(&mut text, &span_id.0);
        text.push_str("-01");
        Self {
            traceparent: text,
            trace_id,
            span_id,
            parent_id: None,
            is_parent_sampled: None,
            is_continued: false,
        }
    }

    /// Creates the context of a span whose parent is the span of this context.
    #[must_use]
    pub fn child(&self, entropy: &dyn Entropy) -> Self {
        let child = Self::new(self.trace_id, SpanId::generate(entropy));
        Self {
            parent_id: Some(self.span_id),
            ..child.with_sampling(self.is_sampled())
        }
    }

    /// Sets whether the trace is sampled.
    #[must_use]
    pub fn with_sampling(mut self, is_sampled: bool) -> Self {
        let flags = if is_sampled { "01" } else { "00" };
        self.traceparent.replace_range(FLAGS, flags);
        self
    }

    /// Returns the `traceparent` for the upstream, which has 55 characters.
    #[must_use]
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// Returns the trace id: 32 lower-case hexadecimal digits, never all zero.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        &self.traceparent[TRACE_ID]
    }

    /// Returns the id of the span of this process, which is the parent of the upstream's spans: 16 lower-case
    /// hexadecimal digits, never all zero.
    #[must_use]
    pub fn span_id(&self) -> &str {
        &self.traceparent[SPAN_ID]
    }

    /// Returns the id of the trace as bytes.
    #[must_use]
    pub const fn trace(&self) -> TraceId {
        self.trace_id
    }

    /// Returns the id of the span of this process as bytes.
    #[must_use]
    pub const fn span(&self) -> SpanId {
        self.span_id
    }

    /// Returns the id of the parent span; `None` if this span starts the trace.
    #[must_use]
    pub const fn parent(&self) -> Option<SpanId> {
        self.parent_id
    }

    /// Returns whether the `traceparent` of the client says that the trace is sampled; `None` if there is no valid one.
    #[must_use]
    pub const fn is_parent_sampled(&self) -> Option<bool> {
        self.is_parent_sampled
    }

    /// Returns whether the trace is sampled.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.traceparent.ends_with("-01")
    }
}

/// Maximum length of a client's request id in characters.
const MAX_REQUEST_ID_LENGTH: usize = 128;

/// Returns whether a client's request id is accepted: 1 to 128 characters of `[A-Za-z0-9._:-]`. Any other id is
/// replaced, because ids are written to headers, logs and the audit log.
#[must_use]
pub fn is_request_id(text: &[u8]) -> bool {
    !text.is_empty()
        && text.len() <= MAX_REQUEST_ID_LENGTH
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::SeededEntropy;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn begin(traceparent: &str) -> TraceContext {
        TraceContext::begin(Some(traceparent), &SeededEntropy::new(1))
    }

    #[test]
    fn line_08_a_valid_trace_is_continued_with_a_new_span() {
        let context = begin(&format!("00-{TRACE}-00f067aa0ba902b7-00"));
        assert!(context.is_continued);
        assert_eq!(context.trace_id(), TRACE);
        assert_ne!(context.span_id(), "00f067aa0ba902b7");
        assert!(context.traceparent().ends_with("-01"));
    }

    #[test]
    fn line_08_a_malformed_traceparent_starts_a_new_trace() {
        for bad in [
            String::new(),
            format!("01-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{TRACE}-0000000000000000-01"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01".to_owned(),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-00f067aa0ba902b7"),
            format!("00-{TRACE}-00f067aa0ba902b7-01-x"),
            format!("00-{TRACE}-00f067aa0ba902b7-0"),
        ] {
            let context = begin(&bad);
            assert!(
                !context.is_continued && context.trace_id() != TRACE,
                "{bad}"
            );
        }
    }

    /// A source of zeros, which are not a valid id.
    #[derive(Debug)]
    struct Zeros;

    impl Entropy for Zeros {
        fn fill(&self, buffer: &mut [u8]) {
            buffer.fill(0);
        }
    }

    #[test]
    fn random_ids_are_never_all_zero() {
        let context = TraceContext::begin(None, &Zeros);
        let sent = Traceparent::parse(context.traceparent()).unwrap();
        assert_eq!(sent.trace_id.to_string(), context.trace_id());
    }

    #[test]
    fn a_child_has_the_trace_and_the_flag_of_its_parent() {
        let parent = begin(&format!("00-{TRACE}-00f067aa0ba902b7-01")).with_sampling(false);
        assert_eq!(parent.parent(), SpanId::parse("00f067aa0ba902b7"));
        let child = parent.child(&SeededEntropy::new(2));
        assert_eq!(child.trace_id(), TRACE);
        assert_eq!(child.parent(), Some(parent.span()));
        assert!(child.span() != parent.span() && !child.is_sampled());
        assert!(child.traceparent().ends_with("-00"));
    }

    #[test]
    fn the_flag_of_the_client_is_only_reported() {
        for (flags, expected) in [("00", false), ("01", true), ("02", false), ("ff", true)] {
            let context = begin(&format!("00-{TRACE}-00f067aa0ba902b7-{flags}"));
            assert_eq!(context.is_parent_sampled(), Some(expected), "{flags}");
            assert!(context.is_sampled());
        }
        let context = begin("00-zz");
        assert_eq!(context.is_parent_sampled(), None);
    }

    proptest! {
        #[test]
        fn line_08_the_traceparent_for_the_upstream_is_always_valid(text in ".{0,60}", seed in any::<u64>()) {
            let context = TraceContext::begin(Some(&text), &SeededEntropy::new(seed));
            let sent = context.traceparent();
            let parsed = Traceparent::parse(sent).map(|parsed| parsed.trace_id.to_string());
            prop_assert_eq!(parsed.as_deref(), Some(context.trace_id()));
        }
    }

    #[test]
    fn line_07_request_ids_have_1_to_128_characters() {
        assert!(!is_request_id(b""));
        assert!(is_request_id(b"a"));
        assert!(is_request_id(&[b'x'; 128]));
        assert!(!is_request_id(&[b'x'; 129]));
    }

    proptest! {
        #[test]
        fn line_07_request_ids_contain_only_allowed_characters(text in proptest::collection::vec(any::<u8>(), 1..128)) {
            let harmless = |b: &u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-".contains(b);
            prop_assert_eq!(is_request_id(&text), text.iter().all(harmless));
        }
    }
}
