//! Headers that may occur only once. Two lines of such a header are ambiguous and count as none.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Returns the value of a header that occurs exactly once; otherwise `None`.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => Some(line),
        _ => None,
    }
}

/// Returns the text of a header that occurs exactly once; otherwise `None`. A value that is not UTF-8 is `None` as
/// well.
pub(crate) fn single_text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    single(headers, name).and_then(|line| std::str::from_utf8(line.as_bytes()).ok())
}
