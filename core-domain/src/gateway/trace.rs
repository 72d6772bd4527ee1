//! The trace of a request (W3C trace context), and the check of request ids.

use crate::kernel::{Entropy, push_hex};

/// The position of the trace id in a `traceparent`.
const TRACE_ID: std::ops::Range<usize> = 3..35;

/// The position of the span id in a `traceparent`.
const SPAN_ID: std::ops::Range<usize> = 36..52;

/// The trace that a request belongs to, and the gateway's span in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The `traceparent` for the upstream. It contains the trace id and the span id.
    traceparent: String,
    /// Whether the client started the trace. The client's `tracestate` is forwarded only in this case.
    pub is_continued: bool,
}

/// Returns whether the text is an id of this length: lower-case hexadecimal digits that are not all zero.
fn is_id(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        && text.bytes().any(|b| b != b'0')
}

/// Returns the trace id of a `traceparent` of version 00. `None` if it is malformed.
fn parse(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let (version, trace_id, parent_id, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let flags_fine = flags.len() == 2 && flags.bytes().all(|b| b.is_ascii_hexdigit());
    let fine = parts.next().is_none()
        && version == "00"
        && is_id(trace_id, 32)
        && is_id(parent_id, 16)
        && flags_fine;
    fine.then_some(trace_id)
}

/// Appends a random id of `BYTES` bytes in hexadecimal. It is never all zero.
fn push_random_id<const BYTES: usize>(text: &mut String, entropy: &dyn Entropy) {
    let mut id = [0_u8; BYTES];
    entropy.fill(&mut id);
    if id.iter().all(|b| *b == 0) {
        id[0] = 1;
    }
    push_hex(text, &id);
}

impl TraceContext {
    /// Continues the trace of a client's `traceparent`, or starts a new one if it is missing or malformed. The trace is
    /// always sampled: the client's flag neither forces nor suppresses tracing.
    #[must_use]
    pub fn begin(traceparent: Option<&str>, entropy: &dyn Entropy) -> Self {
        let continued = traceparent.and_then(parse);
        let mut text = String::with_capacity(SPAN_ID.end + 3);
        text.push_str("00-");
        match continued {
            Some(trace_id) => text.push_str(trace_id),
            None => push_random_id::<16>(&mut text, entropy),
        }
        text.push('-');
        push_random_id::<8>(&mut text, entropy);
        text.push_str("-01");
        Self {
            traceparent: text,
            is_continued: continued.is_some(),
        }
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

    /// Returns the id of the gateway's span, which is the parent of the upstream's spans: 16 lower-case hexadecimal
    /// digits, never all zero.
    #[must_use]
    pub fn span_id(&self) -> &str {
        &self.traceparent[SPAN_ID]
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
        assert_eq!(parse(context.traceparent()), Some(context.trace_id()));
    }

    proptest! {
        #[test]
        fn line_08_the_traceparent_for_the_upstream_is_always_valid(text in ".{0,60}", seed in any::<u64>()) {
            let context = TraceContext::begin(Some(&text), &SeededEntropy::new(seed));
            let sent = context.traceparent();
            prop_assert_eq!(parse(sent), Some(context.trace_id()));
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
