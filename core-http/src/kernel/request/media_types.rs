//! The media types of requests and responses, and the `Accept` header.

/// The content type of JSON.
pub(crate) const JSON: &str = "application/json";

/// The content type of HTML pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// The content type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Returns whether an `Accept` header allows a content type. Quality values are ignored, except zero.
pub(crate) fn accepts(accept: &str, content_type: &str) -> bool {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or(content_type)
        .trim();
    let group = essence.split('/').next().unwrap_or(essence);
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let wanted = parts.next().unwrap_or_default();
        let refused = parts.any(|part| part == "q=0" || part == "q=0.0");
        let fits = wanted == "*/*"
            || wanted.eq_ignore_ascii_case(essence)
            || wanted.strip_suffix("/*") == Some(group)
            // Clients that accept only problem documents can read the JSON of an error as well.
            || (essence == JSON && wanted == "application/problem+json");
        fits && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_matches_the_exact_type_its_group_or_a_wildcard() {
        let json = JSON;
        for good in [
            "*/*",
            "application/*",
            "application/json",
            "text/html, */*;q=0.1",
        ] {
            assert!(accepts(good, json), "{good}");
        }
        for bad in [
            "text/html",
            "application/json;q=0",
            "image/*",
            "application",
        ] {
            assert!(!accepts(bad, json), "{bad}");
        }
        assert!(accepts("text/html", "text/html; charset=utf-8"));
    }
}
