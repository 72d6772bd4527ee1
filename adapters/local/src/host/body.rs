//! The body of a response.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;

/// The body of a response. Files are streamed and never completely in memory.
pub type SiteBody = BoxBody<Bytes, std::io::Error>;
