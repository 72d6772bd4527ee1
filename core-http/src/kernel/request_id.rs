//! Request ids.

use bytes::Bytes;
use core_domain::gateway::is_request_id;
use core_domain::kernel::new_uuid;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{App, header_names};

/// The id of a request: what the gateway or the client calls it, if that is fit to be repeated, else a new one; as a header value, which is always
/// text.
#[must_use]
pub fn request_id(app: &App, headers: &HeaderMap) -> HeaderValue {
    [&header_names::CORE_REQUEST_ID, &header_names::REQUEST_ID]
        .into_iter()
        .find_map(|name| presented(headers, name))
        .unwrap_or_else(|| own_value(new_uuid(app.clock.now(), app.entropy.as_ref())))
}

/// A header value of text of our own, without a copy. One that cannot be sent, which no text of ours is, is empty.
pub(crate) fn own_value(text: impl Into<Bytes>) -> HeaderValue {
    HeaderValue::from_maybe_shared(text.into()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The header's value, when it is there exactly once and fit to be an id.
fn presented(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() || !is_request_id(value.as_bytes()) {
        return None;
    }
    Some(value.clone())
}
