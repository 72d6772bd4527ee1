//! Parts that the pages of all services share.

use core_domain::kernel::Timestamp;
use maud::{Markup, html};

/// Renders a message about a successful action.
pub(crate) fn notice(text: &str) -> Markup {
    html! { p.notice role="status" { (text) } }
}

/// Renders an error message about the whole form.
pub(crate) fn alert(text: &str) -> Markup {
    html! { p.alert role="alert" { (text) } }
}

/// Renders a time as a date, in UTC.
pub(crate) fn day(at: Timestamp) -> Markup {
    let exact = at.to_rfc3339();
    let day = exact.get(..10).unwrap_or(&exact);
    html! { time datetime=(day) { (day) } }
}

/// Renders a time with minutes, in UTC.
pub(crate) fn moment(at: Timestamp) -> Markup {
    let exact = at.to_rfc3339();
    let minute = exact.get(..16).unwrap_or(&exact).replace('T', " ");
    html! { time datetime=(exact) { (minute) " UTC" } }
}
