//! The text formats schemas name, checked by the same rules the domain's types have.

pub(super) use core_domain::kernel::is_plain_name as plain_name;
use core_domain::kernel::{Email, Timestamp};
use core_domain::registry::Hostname;

pub(super) fn email(text: &str) -> bool {
    Email::parse(text).is_ok()
}

pub(super) fn hostname(text: &str) -> bool {
    Hostname::parse(text).is_ok()
}

pub(super) fn date_time(text: &str) -> bool {
    Timestamp::parse_rfc3339(text).is_some()
}

pub(super) fn uri(text: &str) -> bool {
    text.parse::<http::Uri>()
        .is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some_and(|h| !h.is_empty()))
}

pub(super) fn uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}
