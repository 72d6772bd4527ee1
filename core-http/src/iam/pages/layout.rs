//! The layout that all pages share.

use http::header::CONTENT_SECURITY_POLICY;
use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, html};

use super::stylesheet;
use crate::iam::config::Iam;
use crate::kernel::{Html, Output, PageOr, SCRIPT_POLICY, form_policy};
pub(super) use crate::kernel::{alert, day, moment, notice};

/// Renders a page. The title is also its heading.
pub(super) fn html_page(iam: &Iam, title: &str, has_errors: bool, content: &Markup) -> Html {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Screen readers read the title first, so it mentions the error.
                title { @if has_errors { "Error: " } (title) " \u{2013} Platform Control" }
                link rel="stylesheet" href=(iam.path(&stylesheet::path()));
            }
            body {
                header { p.brand { a href=(iam.path("/")) { "Platform Control" } } }
                main {
                    h1 { (title) }
                    (content)
                }
            }
        }
    };
    Html(page.into_string())
}

/// Returns a page with status 200.
pub(super) fn page(iam: &Iam, title: &str, content: &Markup) -> PageOr {
    PageOr::Page(Output::new(html_page(iam, title, false, content)))
}

/// Returns a page that reports an error, with this status.
pub(super) fn error_page(iam: &Iam, title: &str, status: StatusCode, content: &Markup) -> PageOr {
    PageOr::Page(Output::new(html_page(iam, title, true, content)).status(status))
}

/// Allows a page to run the passkey script, if passkeys are enabled.
pub(super) fn with_script(iam: &Iam, page: PageOr) -> PageOr {
    match page {
        PageOr::Page(page) if iam.passkeys().is_ok() => {
            let policy = HeaderValue::from_static(SCRIPT_POLICY);
            PageOr::Page(page.header(CONTENT_SECURITY_POLICY, policy))
        }
        other => other,
    }
}

/// Allows the form of a page to redirect to these targets if they are on other origins.
pub(super) fn with_form_targets<'t>(
    iam: &Iam,
    page: PageOr,
    targets: impl Iterator<Item = &'t str>,
) -> PageOr {
    let origins: Vec<String> = targets
        .filter_map(|target| iam.foreign_origin(target))
        .collect();
    let policy = HeaderValue::try_from(form_policy(&origins));
    match (page, policy) {
        (PageOr::Page(page), Ok(policy)) if !origins.is_empty() => {
            PageOr::Page(page.header(CONTENT_SECURITY_POLICY, policy))
        }
        (page, _) => page,
    }
}

/// Redirects the browser to a path of IAM.
pub(super) fn redirect(iam: &Iam, path: &str) -> PageOr {
    PageOr::To(Output::new(iam.path(path)))
}
