//! The content types of uploads.

use core_domain::kernel::{Code, Error, Result};
use http::{HeaderMap, header};

/// The content types that are accepted for a site.
pub(super) const ACCEPTED: &[&str] = &[
    "application/gzip",
    "application/x-tar",
    "application/zip",
    "application/octet-stream",
    "multipart/form-data",
];

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZIP_MARK: &[u8] = b"PK";

/// The format that `Content-Type` declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// A tar archive, compressed with gzip.
    Gzip,
    /// An uncompressed tar archive.
    Tar,
    /// A zip archive.
    Zip,
    /// An archive in any of these formats.
    Any,
    /// A form whose parts are separated by this boundary.
    Form(String),
}

impl Media {
    /// Parses `Content-Type`. A missing header counts as `application/octet-stream`.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self> {
        let Some(value) = headers.get(header::CONTENT_TYPE) else {
            return Ok(Self::Any);
        };
        let text = value.to_str().unwrap_or_default();
        let kind = text.split(';').next().unwrap_or_default();
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/gzip" => Ok(Self::Gzip),
            "application/x-tar" => Ok(Self::Tar),
            "application/zip" => Ok(Self::Zip),
            "application/octet-stream" => Ok(Self::Any),
            "multipart/form-data" => match parameter(text, "boundary") {
                Some(boundary) if (1..=70).contains(&boundary.len()) => Ok(Self::Form(boundary)),
                _ => Err(Error::refused(
                    Code::BadRequest,
                    "The Content-Type of the form has no valid boundary.",
                )),
            },
            _ => Err(Error::refused(
                Code::UnsupportedMediaType,
                format!("A site must be one of {}.", ACCEPTED.join(", ")),
            )),
        }
    }

    /// Returns whether the first bytes of an archive match the format.
    pub(super) fn fits(&self, bytes: &[u8]) -> bool {
        let (gzip, zip) = (bytes.starts_with(GZIP_MAGIC), bytes.starts_with(ZIP_MARK));
        match self {
            Self::Gzip => gzip,
            Self::Zip => zip,
            Self::Tar => !gzip && !zip,
            Self::Any | Self::Form(_) => true,
        }
    }
}

/// Returns a parameter of a header such as `form-data; name="file"`. Removes quotes and backslash escapes.
pub(super) fn parameter(header: &str, wanted: &str) -> Option<String> {
    let (_, mut rest) = header.split_once(';')?;
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = read_value(after)?;
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = after.trim_start().strip_prefix(';')?;
    }
}

/// Splits a text into the value at its start and the remainder.
fn read_value(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return Some((text[..end].trim().to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(content_type: &str) -> Result<Media> {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(content_type).unwrap();
        headers.insert(header::CONTENT_TYPE, value);
        Media::of(&headers)
    }

    #[test]
    fn every_documented_content_type_is_accepted_and_no_other() {
        for accepted in ACCEPTED {
            assert!(of(&format!("{accepted}; boundary=x")).is_ok(), "{accepted}");
            assert!(of(&format!("{}; boundary=\"x\"", accepted.to_uppercase())).is_ok());
        }
        for other in [
            "application/json",
            "text/html",
            "",
            "application/gzip2",
            "é",
        ] {
            let refused = of(other).unwrap_err();
            assert_eq!(refused.code(), Code::UnsupportedMediaType, "{other}");
        }
        assert_eq!(Media::of(&HeaderMap::new()).unwrap(), Media::Any);
    }

    #[test]
    fn parameters_are_found_with_and_without_quotes() {
        let found = |header| parameter(header, "name");
        assert_eq!(found("form-data; name=file"), Some("file".to_owned()));
        assert_eq!(
            found("form-data; x=\"a;name=b\" ; NAME = \"a \\\"b\\\"\"; y=1"),
            Some("a \"b\"".to_owned())
        );
        assert_eq!(found("form-data; filename=\"name=x\""), None);
        assert_eq!(found("form-data; name=\"open"), None);
        assert_eq!(found("form-data"), None);
        let without = of("multipart/form-data").unwrap_err();
        assert_eq!(without.code(), Code::BadRequest);
    }
}
