//! The HTML pages for errors.

use std::sync::Arc;

use http::StatusCode;
use maud::html;

use super::layout::html_page;
use crate::iam::config::Iam;
use crate::kernel::{ErrorPages, Html};

/// Renders the error pages of IAM.
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
            "The address is incomplete, or the form contains an invalid value.",
        ),
        401 => ("Not signed in", "Sign in to open this page."),
        403 => (
            "Not allowed",
            "You do not have permission to do this, or the request did not come from one of our pages.",
        ),
        404 => ("Not found", "This page does not exist."),
        405 => ("Not possible", "This address cannot be opened in this way."),
        406 => (
            "Not available",
            "This content is not available in the requested format.",
        ),
        409 => ("Not possible", "This is no longer possible."),
        429 => (
            "Too many attempts",
            "There were too many attempts in a short time.",
        ),
        503 => (
            "Not possible at the moment",
            "The service is not available at the moment. Try again later.",
        ),
        _ => ("Something went wrong", "Something went wrong on our side."),
    }
}
