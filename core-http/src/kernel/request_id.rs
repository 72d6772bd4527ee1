//! Request ids.

use core_domain::gateway::is_request_id;
use core_domain::kernel::new_uuid;
use http::HeaderMap;

use super::{App, header_names};

/// The id of a request: what the gateway or the client calls it, if that is fit to be repeated, else a new one.
#[must_use]
pub fn request_id(app: &App, headers: &HeaderMap) -> String {
    [header_names::CORE_REQUEST_ID, header_names::REQUEST_ID]
        .into_iter()
        .find_map(|name| presented(headers, name))
        .unwrap_or_else(|| new_uuid(app.clock.now(), app.entropy.as_ref()))
}

/// The header's value, when it is there exactly once and fit to be an id.
fn presented(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() || !is_request_id(value.as_bytes()) {
        return None;
    }
    value.to_str().ok().map(str::to_owned)
}
