//! The HTML pages for errors.

use http::StatusCode;
use maud::html;

use super::layout::html_page;
use crate::kernel::{ErrorPages, Html};

/// Renders the error pages of billing.
#[derive(Debug)]
pub(crate) struct BillingErrorPages;

impl ErrorPages for BillingErrorPages {
    fn page(&self, status: StatusCode, request_id: &str, retry_after: Option<u64>) -> Html {
        let (title, words) = words(status);
        let content = html! {
            p { (words) }
            @if let Some(seconds) = retry_after {
                p { "Try again in " (seconds) " seconds." }
            }
            p.hint { "Request " code { (request_id) } }
        };
        html_page(None, title, &content)
    }
}

fn words(status: StatusCode) -> (&'static str, &'static str) {
    match status.as_u16() {
        400 | 413..=415 => (
            "This cannot be read",
            "The address is incomplete, or the form contains an invalid value.",
        ),
        401 => (
            "This session has ended",
            "Open the portal again from the application that led you here.",
        ),
        403 => (
            "Not allowed",
            "The request did not come from one of our pages.",
        ),
        404 => (
            "This link does not work",
            "It is incomplete, was used before, or has expired. Open the page again from the application or the mail \
             that led you here.",
        ),
        409 => ("Not possible", "This is no longer possible."),
        429 => (
            "Too many attempts",
            "There were too many attempts in a short time.",
        ),
        502 | 503 => (
            "Not possible at the moment",
            "The payment provider or this service is not available at the moment. Try again later.",
        ),
        _ => ("Something went wrong", "Something went wrong on our side."),
    }
}
