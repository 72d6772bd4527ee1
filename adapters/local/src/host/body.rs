//! The body of an answer.

use bytes::Bytes;
use http_body_util::combinators::BoxBody;

/// The body of an answer: streamed from the file, at no time whole in memory.
pub type SiteBody = BoxBody<Bytes, std::io::Error>;
