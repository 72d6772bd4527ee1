//! The pages of errors.

use std::sync::Arc;

use http::StatusCode;
use maud::html;

use super::layout::html_page;
use crate::iam::config::Iam;
use crate::kernel::{ErrorPages, Html};

/// Writes them.
#[derive(Debug)]
pub(crate) struct HtmlErrorPages(pub(crate) Arc<Iam>);

impl ErrorPages for HtmlErrorPages {
    fn page(&self, status: StatusCode, request_id: &str, retry_after: Option<u64>) -> Html {
        let (title, words) = words(status);
        let content = html! {
            p { (words) }
            @if let Some(seconds) = retry_after {
                p { "Try again " (in_time(seconds)) "." }
            }
            p { a href=(self.0.path("/")) { "Back to the start" } }
            p.hint { "Request " code { (request_id) } }
        };
        html_page(&self.0, title, true, &content)
    }
}

fn in_time(seconds: u64) -> String {
    match seconds {
        0..=1 => "in a second".to_owned(),
        2..=119 => format!("in {seconds} seconds"),
        _ => format!("in {} minutes", seconds.div_ceil(60)),
    }
}

fn words(status: StatusCode) -> (&'static str, &'static str) {
    match status.as_u16() {
        400 | 413 | 414 | 415 => (
            "This cannot be read",
            "The address is not complete, or the form has something in it that cannot be.",
        ),
        401 => ("Not signed in", "You must be signed in for this."),
        403 => (
            "Not allowed",
            "You may not do this, or the request did not come from one of our pages.",
        ),
        404 => ("Not found", "There is no such page."),
        405 => ("Not possible", "This address is not opened like this."),
        406 => (
            "Not available",
            "There is nothing here of the kind you asked for.",
        ),
        409 => ("Not possible", "This cannot be done any more."),
        429 => (
            "Too many attempts",
            "There were too many attempts in a short time.",
        ),
        503 => (
            "Not possible at the moment",
            "This is not possible at the moment.",
        ),
        _ => ("Something went wrong", "Something went wrong on our side."),
    }
}
