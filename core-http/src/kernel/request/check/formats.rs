//! The text formats that schemas can name.

use core_domain::kernel::{Email, Timestamp};
use core_domain::registry::Hostname;

pub(super) use core_domain::kernel::is_plain_name as plain_name;

/// Returns whether the text has the format `email`.
pub(super) fn email(text: &str) -> bool {
    Email::parse(text).is_ok()
}

/// Returns whether the text has the format `idn-hostname`.
pub(super) fn hostname(text: &str) -> bool {
    Hostname::parse(text).is_ok()
}

/// Returns whether the text has the format `date-time` (RFC 3339).
pub(super) fn date_time(text: &str) -> bool {
    Timestamp::parse_rfc3339(text).is_some()
}

/// Returns whether the text has the format `uri`: an absolute URI with a host.
pub(super) fn uri(text: &str) -> bool {
    text.parse::<http::Uri>()
        .is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some_and(|h| !h.is_empty()))
}

/// Returns whether the text has the format `uuid`, in the form with hyphens.
pub(super) fn uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}
