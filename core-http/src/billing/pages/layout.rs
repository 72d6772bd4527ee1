//! The layout that all pages of billing share.

use core_domain::billing::{Currency, Money};
use core_domain::kernel::{Code, Result};
use core_domain::use_case::billing::Billing;
use http::StatusCode;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::stylesheet;
use crate::kernel::{
    Cx, ErrorStyle, Html, Output, PageOr, Row, StandalonePage, ensure_trusted_form,
};
pub(super) use crate::kernel::{alert, day, notice};

/// The path of the portal.
pub(super) const PORTAL: &str = "/portal";

/// The path of all forms of the portal.
pub(super) const FORMS: &str = "/portal/forms";

/// Renders a page that is reached at the address of the billing service. The title is also its heading.
pub(super) fn html_page(billing: Option<&Billing>, title: &str, content: &Markup) -> Html {
    let style = html! { link rel="stylesheet" href=(stylesheet::path()); };
    Html(document_with(billing, &style, title, content).into_string())
}

/// Renders a page that contains its stylesheet. The title is also its heading.
pub(super) fn standalone_page(billing: &Billing, title: &str, content: &Markup) -> StandalonePage {
    // The stylesheet contains no characters that would have to be escaped in this element.
    let style = html! { style { (PreEscaped(stylesheet::TEXT)) } };
    let html = document_with(Some(billing), &style, title, content).into_string();
    StandalonePage {
        html,
        style: stylesheet::TEXT,
    }
}

fn document_with(
    billing: Option<&Billing>,
    style: &Markup,
    title: &str,
    content: &Markup,
) -> Markup {
    let is_simulated = billing.is_some_and(|billing| !billing.payments.is_live());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " \u{2013} Platform Control" }
                (style)
            }
            body {
                @if is_simulated {
                    aside.simulated { p { "Test mode: no real money moves." } }
                }
                main {
                    h1 { (title) }
                    (content)
                }
            }
        }
    }
}

/// Returns a page with this status.
pub(super) fn page(billing: &Billing, title: &str, status: StatusCode, content: &Markup) -> PageOr {
    PageOr::Page(Output::new(html_page(Some(billing), title, content)).status(status))
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

/// Returns a word for people that begins with a capital letter, for example `Past due` for `past_due`.
pub(super) fn capital_words(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    let rest = words(letters.as_str());
    first.into_iter().chain(rest.chars()).collect()
}

/// Writes a number with its digits in groups of three, for example `1,000,000`.
pub(super) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
