//! Parsing of `multipart/form-data`.

use bytes::Bytes;

/// A part of a form.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) file_name: Option<String>,
    pub(crate) body: Bytes,
}

/// Returns the parts of a body, or a description of the error.
pub(crate) fn parse(content_type: Option<&str>, body: &Bytes) -> Result<Vec<Part>, &'static str> {
    let content_type = content_type.unwrap_or_default();
    if !content_type.starts_with("multipart/form-data") {
        return Err("the body is no multipart form");
    }
    let boundary = parameter(content_type, "boundary").ok_or("the form has no boundary")?;
    let delimiter = format!("--{boundary}");
    let mut rest = strip(body.clone(), delimiter.as_bytes())
        .ok_or("the form does not begin with its boundary")?;
    let delimiter = format!("\r\n{delimiter}");
    let mut parts = Vec::new();
    while let Some(part) = strip(rest.clone(), b"\r\n") {
        let end = find(&part, delimiter.as_bytes()).ok_or("the form does not end")?;
        parts.push(read(&part.slice(..end))?);
        rest = part.slice(end + delimiter.len()..);
    }
    if !rest.starts_with(b"--") {
        return Err("the form does not end");
    }
    Ok(parts)
}

fn read(part: &Bytes) -> Result<Part, &'static str> {
    let end = find(part, b"\r\n\r\n").ok_or("a part of the form has no end of its headers")?;
    let head = std::str::from_utf8(&part[..end]).map_err(|_| "headers of the form are no text")?;
    let header = |name: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let named = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim())
    };
    let disposition = header("content-disposition").ok_or("a part of the form has no name")?;
    Ok(Part {
        name: parameter(disposition, "name").ok_or("a part of the form has no name")?,
        file_name: parameter(disposition, "filename"),
        body: part.slice(end + 4..),
    })
}

/// Returns a parameter of a header value, quoted or not.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut parameters = value.split(';').skip(1).map(str::trim);
    let found = parameters.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(found.trim_matches('"').to_owned())
}

fn strip(bytes: Bytes, prefix: &[u8]) -> Option<Bytes> {
    bytes
        .starts_with(prefix)
        .then(|| bytes.slice(prefix.len()..))
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}
