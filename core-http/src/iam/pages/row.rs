//! What the rows of all pages and forms have in common.

use core_domain::kernel::Code;
use http::StatusCode;

use crate::kernel::{ErrorStyle, Row};

/// The row of a page.
pub(super) fn page(row: Row) -> Row {
    row.errors(ErrorStyle::Page)
        .success(&[StatusCode::OK, StatusCode::SEE_OTHER])
}

/// The row of a form: sends the browser on, or shows the page again and what is wrong with it.
pub(super) fn form(row: Row) -> Row {
    row.errors(ErrorStyle::Page)
        .success(&[StatusCode::SEE_OTHER])
        .takes_forms()
        .refuses(&[Code::InvalidOrigin, Code::MissingOrNullOrigin])
}
