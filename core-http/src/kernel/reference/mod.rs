//! The API reference at `/docs`: a page that shows OpenAPI documents with Swagger UI.
//!
//! A service shows its own document, and a gateway those of all its services. The page and its files need no other
//! host. All links are relative, so that they also work below a prefix. Without the feature `docs` these paths do not
//! exist.
//!
//! The page only shows the documents. Sending requests from it ("Try it") is disabled: it would let a reader change
//! records with the session of the browser, and a service key could remain in the page.

mod document;
#[cfg(feature = "docs")]
mod file;
#[cfg(feature = "docs")]
mod page;

use http::Response;
use http::request::Parts;

pub(crate) use self::document::Document;
use crate::kernel::request::body::Body;

/// The path of the page.
pub(crate) const PAGE: &str = "/docs";

/// Returns whether the path belongs to the page or one of its files.
#[cfg(feature = "docs")]
pub(crate) fn is_path(path: &str) -> bool {
    path == PAGE || file::find(path).is_some()
}

/// Returns whether the path belongs to the page or one of its files. Without the feature `docs` there are none.
#[cfg(not(feature = "docs"))]
pub(crate) const fn is_path(_: &str) -> bool {
    false
}

/// Returns the page with these documents, or one of its files. `None` for other paths and methods.
#[cfg(feature = "docs")]
pub(crate) fn answer(
    parts: &Parts,
    documents: impl FnOnce() -> Vec<Document>,
) -> Option<Response<Body>> {
    if !matches!(parts.method, http::Method::GET | http::Method::HEAD) {
        return None;
    }
    if parts.uri.path() == PAGE {
        return page::answer(&documents(), parts.uri.query());
    }
    file::find(parts.uri.path()).map(|file| file.answer(parts))
}

/// Returns `None`: without the feature `docs` there is no page.
#[cfg(not(feature = "docs"))]
pub(crate) fn answer(_: &Parts, _: impl FnOnce() -> Vec<Document>) -> Option<Response<Body>> {
    None
}
