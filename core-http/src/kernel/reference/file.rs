//! The files that the page loads: Swagger UI, and the script and stylesheet that fit it to the page.

use std::sync::OnceLock;

use core_domain::kernel::IfMatch;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};

use crate::kernel::answer::asset::{CSS, JAVASCRIPT, asset_reply, version_of};
use crate::kernel::answer::reply::Content;
use crate::kernel::request::body::Body;

/// The folder of the files.
const FOLDER: &str = "/docs/assets/";

/// The stylesheets, in the order in which the page loads them.
pub(super) static STYLESHEETS: [File; 2] = [
    File::new(
        "swagger-ui.css",
        CSS,
        include_str!("../../../assets/swagger-ui/swagger-ui.css"),
    ),
    File::new("docs.css", CSS, include_str!("docs.css")),
];

/// The scripts, in the order in which the page loads them.
pub(super) static SCRIPTS: [File; 2] = [
    File::new(
        "swagger-ui-bundle.js",
        JAVASCRIPT,
        include_str!("../../../assets/swagger-ui/swagger-ui-bundle.js"),
    ),
    File::new("docs.js", JAVASCRIPT, include_str!("docs.js")),
];

/// A file of the page.
#[derive(Debug)]
pub(super) struct File {
    name: &'static str,
    content_type: &'static str,
    text: &'static str,
    version: OnceLock<String>,
}

impl File {
    const fn new(name: &'static str, content_type: &'static str, text: &'static str) -> Self {
        Self {
            name,
            content_type,
            text,
            version: OnceLock::new(),
        }
    }

    /// Returns the version of the content. The first call computes it.
    fn version(&self) -> &str {
        self.version.get_or_init(|| version_of(self.text))
    }

    /// Returns the path with the version, relative to the page.
    pub(super) fn link(&self) -> String {
        let folder = FOLDER.trim_start_matches('/');
        format!("{folder}{}?v={}", self.name, self.version())
    }

    /// Returns the file; status 304 if the client already has this version.
    ///
    /// A request with the current version in its query may be cached forever, because another content has another
    /// version. Other requests ask again each time.
    pub(super) fn answer(&self, parts: &Parts) -> Response<Body> {
        let version = self.version();
        let mut reply = asset_reply(StatusCode::OK, self.content_type, self.text, version);
        let is_current =
            parts.uri.query().and_then(|query| query.strip_prefix("v=")) == Some(version);
        let caching = match is_current {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        let caching = HeaderValue::from_static(caching);
        reply.headers.insert(header::CACHE_CONTROL, caching);
        let tags = parts.headers.get_all(header::IF_NONE_MATCH).iter();
        let mut tags = tags.filter_map(|line| line.to_str().ok());
        if tags.any(|line| IfMatch::weak(line).includes(version)) {
            reply.status = StatusCode::NOT_MODIFIED;
            reply.content = Content::Empty;
        }
        reply.into_response()
    }
}

/// Returns the file with this path, if there is one.
pub(super) fn find(path: &str) -> Option<&'static File> {
    let name = path.strip_prefix(FOLDER)?;
    let mut files = STYLESHEETS.iter().chain(&SCRIPTS);
    files.find(|file| file.name == name)
}
