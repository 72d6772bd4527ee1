//! The layout that all pages of billing share.

use core_domain::billing::{Currency, Money};
use core_domain::kernel::{Code, Result};
use core_domain::use_case::billing::Billing;
use http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::stylesheet;
use crate::kernel::{Cx, ErrorStyle, Html, Output, PageOr, Row, ensure_trusted_form};
pub(super) use crate::kernel::{alert, day, notice};

/// The path of the portal.
pub(super) const PORTAL: &str = "/portal";

/// The path of all forms of the portal.
pub(super) const FORMS: &str = "/portal/forms";

/// Renders a page. The title is also its heading. `base` is the address of the billing service, empty for a page that is
/// reached there.
pub(super) fn html_page(
    billing: Option<&Billing>,
    base: &str,
    title: &str,
    content: &Markup,
) -> Html {
    let is_simulated = billing.is_some_and(|billing| !billing.payments.is_live());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " \u{2013} Platform Control" }
                link rel="stylesheet" href={ (base) (stylesheet::path()) };
            }
            body {
                @if is_simulated {
                    p.simulated role="note" { "Test mode: no real money moves." }
                }
                main {
                    h1 { (title) }
                    (content)
                }
            }
        }
    };
    Html(page.into_string())
}

/// Returns a page with this status.
pub(super) fn page(billing: &Billing, title: &str, status: StatusCode, content: &Markup) -> PageOr {
    PageOr::Page(Output::new(html_page(Some(billing), "", title, content)).status(status))
}

/// Returns an amount for people, for example `29.00 USD`.
pub(super) fn amount(minor: i64, currency: Currency) -> String {
    match Money::new(minor.into(), currency) {
        Ok(money) => money.to_string(),
        Err(_) => format!("{minor} ({currency})"),
    }
}

/// Returns a word for people, for example `past due` for `past_due`.
pub(super) fn words(word: &str) -> String {
    word.replace('_', " ")
}

/// Configures the row of a page.
pub(super) fn page_row(row: Row) -> Row {
    row.errors(ErrorStyle::Page)
        .success(&[StatusCode::OK, StatusCode::SEE_OTHER])
}

/// Configures the row of a form. It redirects the browser, or shows the page again with the error.
pub(super) fn form_row(row: Row) -> Row {
    row.errors(ErrorStyle::Page)
        .success(&[StatusCode::SEE_OTHER])
        .takes_forms()
        .refuses(&[Code::InvalidOrigin, Code::MissingOrNullOrigin])
}

/// Refuses a form that a page of another origin has sent.
///
/// # Errors
/// Those of [`ensure_trusted_form`].
pub(super) fn ensure_own_form(cx: &Cx, billing: &Billing) -> Result<()> {
    ensure_trusted_form(cx, |origin| billing.pages.base_url() == Some(origin))
}
