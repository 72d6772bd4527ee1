//! Checks of the API reference at `/docs`, which services and the gateway share.

use http::{Method, Request};

use super::Answer;
use core_http::kernel::{Body, empty_body};

/// Returns a request without a credential.
pub(crate) fn read(method: Method, path: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    request
        .header("host", "api.example.org")
        .body(empty_body())
        .unwrap()
}

/// Returns the values of an attribute in an HTML page, in their order.
pub(crate) fn attributes<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let start = format!(" {name}=\"");
    let parts = page.split(&*start).skip(1);
    parts.filter_map(|part| part.split('"').next()).collect()
}

/// Checks the policy of the page, and that it names no other host. Returns the HTML.
pub(crate) fn assert_page(page: &Answer) -> String {
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    assert_eq!(page.header("cache-control"), "no-cache");
    let html = String::from_utf8(page.bytes.to_vec()).unwrap();
    assert!(!html.contains("//"), "the page names another host: {html}");
    assert_eq!(
        html.matches("<script ").count(),
        attributes(&html, "src").len()
    );
    html
}

/// Returns the paths of the files that the page loads. The page is at `/docs`, so each link is relative to the root.
pub(crate) fn files(html: &str) -> Vec<String> {
    let links = attributes(html, "href");
    let files = links.into_iter().chain(attributes(html, "src"));
    let files = files.filter(|link| link.starts_with("docs/assets/"));
    files.map(|link| format!("/{link}")).collect()
}

/// Checks that a file is complete and may be cached forever.
pub(crate) fn assert_file(path: &str, file: &Answer) {
    assert!(file.bytes.len() > 100, "{path} is empty");
    let is_script = path.contains(".js?");
    let content_type = ["text/css; charset=utf-8", "text/javascript; charset=utf-8"];
    assert_eq!(
        file.header("content-type"),
        content_type[usize::from(is_script)],
        "{path}"
    );
    let version = path.split_once("?v=").unwrap().1;
    assert_eq!(file.header("etag"), format!("\"{version}\""), "{path}");
    assert_eq!(
        file.header("cache-control"),
        "public, max-age=31536000, immutable",
        "{path}"
    );
}
