//! Multipart request bodies (RFC 7578).

use bytes::Bytes;

/// A builder of a multipart body.
#[derive(Debug)]
pub(crate) struct Form {
    boundary: String,
    body: Vec<u8>,
}

impl Form {
    /// Creates an empty body. The boundary must not occur in any part; use a random text or a digest of all parts.
    pub(crate) fn new(boundary: impl Into<String>) -> Self {
        Self {
            boundary: boundary.into(),
            body: Vec::new(),
        }
    }

    pub(crate) fn text(self, name: &str, text: &str) -> Self {
        self.part(&quote("name", name), None, text.as_bytes())
    }

    pub(crate) fn file(self, name: &str, content_type: &str, content: &[u8]) -> Self {
        let names = format!("{}; {}", quote("name", name), quote("filename", name));
        self.part(&names, Some(content_type), content)
    }

    fn part(mut self, names: &str, content_type: Option<&str>, content: &[u8]) -> Self {
        let mut head = format!(
            "--{}\r\nContent-Disposition: form-data; {names}\r\n",
            self.boundary
        );
        if let Some(content_type) = content_type {
            head.push_str(&format!("Content-Type: {content_type}\r\n"));
        }
        head.push_str("\r\n");
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(content);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    /// Returns the content type and the body.
    pub(crate) fn finish(mut self) -> (String, Bytes) {
        let end = format!("--{}--\r\n", self.boundary);
        self.body.extend_from_slice(end.as_bytes());
        let content_type = format!("multipart/form-data; boundary={}", self.boundary);
        (content_type, self.body.into())
    }
}

/// Encodes a header parameter in the way that browsers do.
fn quote(parameter: &str, value: &str) -> String {
    let value = value
        .replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A");
    format!("{parameter}=\"{value}\"")
}

/// Returns a boundary that occurs in none of these parts: a digest of all of them, which no part can contain.
pub(crate) fn boundary<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(part);
        hash.update(b"\n");
    }
    format!("core-{}", &hash.finalize().to_hex()[..40])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_part_headers() {
        let form = Form::new("b").text("metadata", "{}");
        let (content_type, body) = form.file("a\"\r\nX: y", "text/plain", b"1").finish();
        assert_eq!(content_type, "multipart/form-data; boundary=b");
        let expected = "--b\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{}\r\n\
            --b\r\nContent-Disposition: form-data; name=\"a%22%0D%0AX: y\"; filename=\"a%22%0D%0AX: y\"\r\n\
            Content-Type: text/plain\r\n\r\n1\r\n--b--\r\n";
        assert_eq!(body, expected.as_bytes());
    }
}
