//! Settings that the rows of all pages and forms share.

use core_domain::kernel::Code;
use http::StatusCode;

use crate::kernel::{ErrorStyle, Row};

/// Configures the row of a page.
pub(super) fn page(row: Row) -> Row {
    row.errors(ErrorStyle::Page)
        .success(&[StatusCode::OK, StatusCode::SEE_OTHER])
}

/// Configures the row of a form. It redirects the browser, or shows the page again with the error.
pub(super) fn form(row: Row) -> Row {
    row.errors(ErrorStyle::Page)
        .success(&[StatusCode::SEE_OTHER])
        .takes_forms()
        .refuses(&[Code::InvalidOrigin, Code::MissingOrNullOrigin])
}
