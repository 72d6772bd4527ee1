//! Static files of pages. Each file is part of the program, and its URL changes with its content.

use bytes::Bytes;
use core_domain::kernel::{Result, hex};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use super::reply::{Answer, AnswerKind, Content, Reply};

/// The content type of stylesheets.
pub(crate) const CSS: &str = "text/css; charset=utf-8";

/// The content type of scripts.
pub(crate) const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Returns a version that is different for each content, so that browsers do not use an outdated file.
pub(crate) fn version_of(text: &str) -> String {
    let mut version = hex(&Sha256::digest(text));
    version.truncate(16);
    version
}

/// A stylesheet as a response. It has the variables and rules that all pages share, and those of one service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stylesheet {
    /// The text of the stylesheet.
    pub(crate) text: &'static str,
    /// The version of the text.
    pub(crate) version: &'static str,
}

impl Answer for Stylesheet {
    fn kind() -> AnswerKind {
        AnswerKind::other(Some(CSS)).with_etag()
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        Ok(asset_reply(default, CSS, self.text, self.version))
    }
}

/// Returns the response with the content of a file. Caches may use it for a day.
pub(crate) fn asset_reply(
    status: StatusCode,
    kind: &'static str,
    text: &'static str,
    version: &str,
) -> Reply {
    let set = |name, value| (name, HeaderValue::from_static(value));
    let headers = [
        set(header::CACHE_CONTROL, "public, max-age=86400"),
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Reply {
        status,
        content: Content::Bytes(kind, Bytes::from_static(text.as_bytes())),
        headers: HeaderMap::from_iter(headers),
        etag: Some(version.to_owned()),
    }
}
