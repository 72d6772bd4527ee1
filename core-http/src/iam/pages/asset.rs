//! Files that pages name: each is part of the program, and has another address when it has another text.

use bytes::Bytes;
use core_domain::kernel::{Result, hex};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::kernel::{Content, Reply};

/// What tells a text from a former one, so that no browser shows a page with an old file.
pub(super) fn version_of(text: &str) -> String {
    let mut version = hex(&Sha256::digest(text));
    version.truncate(16);
    version
}

/// The file.
pub(super) fn reply(
    status: StatusCode,
    kind: &'static str,
    text: &'static str,
    version: &str,
) -> Result<Reply> {
    let set = |name, value| (name, HeaderValue::from_static(value));
    let headers = [
        set(header::CACHE_CONTROL, "public, max-age=86400"),
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok(Reply {
        status,
        content: Content::Bytes(kind, Bytes::from_static(text.as_bytes())),
        headers: HeaderMap::from_iter(headers),
        etag: Some(version.to_owned()),
    })
}
