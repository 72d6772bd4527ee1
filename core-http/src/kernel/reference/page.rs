//! The HTML page.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

use super::document::Document;
use super::file::{SCRIPTS, STYLESHEETS};
use crate::kernel::answer::reply::{Content, Reply};
use crate::kernel::request::body::Body;
use crate::kernel::request::media_types::HTML;

/// The `Content-Security-Policy` of the page. Swagger UI has its icons in `data:` URLs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the page that shows the document of the service in the query (`service=iam`), or otherwise the first one.
/// `None` without documents.
pub(super) fn answer(documents: &[Document], query: Option<&str>) -> Option<Response<Body>> {
    let wanted = query.and_then(|query| query.strip_prefix("service="));
    let found = documents
        .iter()
        .find(|document| Some(document.service) == wanted);
    let text = page(documents, found.or(documents.first())?).into_string();
    let set = |name, value| (name, HeaderValue::from_static(value));
    let headers = [
        set(header::CONTENT_SECURITY_POLICY, POLICY),
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        set(header::REFERRER_POLICY, "no-referrer"),
        // The versions of the files must be current.
        set(header::CACHE_CONTROL, "no-cache"),
    ];
    let reply = Reply {
        status: StatusCode::OK,
        content: Content::Bytes(HTML, text.into()),
        headers: HeaderMap::from_iter(headers),
        etag: None,
    };
    Some(reply.into_response())
}

fn page(documents: &[Document], shown: &Document) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "API reference: " (shown.service) " \u{2013} Platform Control" }
                link rel="icon" href="data:,";
                @for file in &STYLESHEETS { link rel="stylesheet" href=(file.link()); }
                @for file in &SCRIPTS { script defer src=(file.link()) {} }
            }
            body {
                header {
                    p.brand { "Platform Control" }
                    @if documents.len() > 1 { (services(documents, shown)) }
                    p { a href=(shown.path) { "OpenAPI document" } }
                }
                div id="reference" data-document=(shown.path) data-prefixes=(shown.prefixes.join(" ")) {
                    noscript { p.notice { "This page needs JavaScript. The OpenAPI document does not." } }
                }
            }
        }
    }
}

/// Renders the links to the documents of all services.
fn services(documents: &[Document], shown: &Document) -> Markup {
    html! {
        nav aria-label="Services" {
            @for document in documents {
                a href={ "docs?service=" (document.service) }
                    aria-current=[(document == shown).then_some("page")] { (document.service) }
            }
        }
    }
}
