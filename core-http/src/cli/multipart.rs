//! The field `file` of a form (RFC 7578), in a body that was read already.

use core_domain::kernel::{Code, Error, Result};

use super::media::parameter;

const FIELD: &str = "file";
const LINE_END: &[u8] = b"\r\n";

/// The bytes of the field `file`.
///
/// # Errors
/// `BAD_REQUEST` for what is no form; `VALIDATION_ERROR` for one without the field or with two of them.
pub(super) fn file<'b>(body: &'b [u8], boundary: &str) -> Result<&'b [u8]> {
    let delimiter = format!("\r\n--{boundary}");
    let delimiter = delimiter.as_bytes();
    let mut found = None;
    let mut rest = match body.strip_prefix(&delimiter[LINE_END.len()..]) {
        Some(rest) => rest,
        None => split(body, delimiter)?.1,
    };
    // Two dashes after a delimiter end the form.
    while !rest.starts_with(b"--") {
        let (part, after) = split(after_padding(rest)?, delimiter)?;
        let (name, content) = field(part)?;
        if name.as_deref() == Some(FIELD) && found.replace(content).is_some() {
            return Err(wrong("not_unique", "must be there once"));
        }
        rest = after;
    }
    found.ok_or_else(|| wrong("required", "is required"))
}

fn wrong(code: &'static str, message: &str) -> Error {
    Error::invalid(FIELD, code, message)
}

fn no_form() -> Error {
    Error::refused(
        Code::BadRequest,
        "The body is no form, or it is not complete.",
    )
}

/// The line after a delimiter may be filled up with blanks.
fn after_padding(rest: &[u8]) -> Result<&[u8]> {
    let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\t'));
    let rest = &rest[blanks.count()..];
    rest.strip_prefix(LINE_END).ok_or_else(no_form)
}

/// The name and the content of a part.
fn field(part: &[u8]) -> Result<(Option<String>, &[u8])> {
    if let Some(content) = part.strip_prefix(LINE_END) {
        return Ok((None, content));
    }
    let (headers, content) = split(part, b"\r\n\r\n")?;
    let headers = std::str::from_utf8(headers).map_err(|_| no_form())?;
    let name = headers.split("\r\n").find_map(|line| {
        let (header, value) = line.split_once(':')?;
        let tells = header.trim().eq_ignore_ascii_case("content-disposition");
        tells.then(|| parameter(value, "name")).flatten()
    });
    Ok((name, content))
}

/// What stands before and after the first occurrence of a mark.
fn split<'b>(bytes: &'b [u8], mark: &[u8]) -> Result<(&'b [u8], &'b [u8])> {
    let mut from = 0;
    while let Some(next) = bytes[from..].iter().position(|byte| *byte == b'\r') {
        let at = from + next;
        if bytes[at..].starts_with(mark) {
            return Ok((&bytes[..at], &bytes[at + mark.len()..]));
        }
        from = at + 1;
    }
    Err(no_form())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn form(fields: &[(&str, &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, content) in fields {
            let head = format!(
                "--xyz\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a.zip\"\r\n\
                 Content-Type: application/zip\r\n\r\n"
            );
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--xyz--\r\n");
        body
    }

    #[test]
    fn the_file_is_found_among_other_fields() {
        let body = form(&[("note", b"hi"), ("file", b"\r\n--x\r\n\0\r"), ("z", b"")]);
        assert_eq!(file(&body, "xyz").unwrap(), b"\r\n--x\r\n\0\r");
        let body = b"a preamble\r\n--xyz \t\r\ncontent-disposition: form-data; name=file\r\n\r\nyes\r\n--xyz--";
        assert_eq!(file(body, "xyz").unwrap(), b"yes");
        let body = b"--xyz\r\n\r\nnameless\r\n--xyz\r\nContent-Disposition: form-data;name=file\r\n\r\n\r\n--xyz--";
        assert_eq!(file(body, "xyz").unwrap(), b"");
    }

    #[test]
    fn without_the_file_with_two_and_without_an_end_it_is_refused() {
        let none = file(&form(&[("files", b"x")]), "xyz").unwrap_err();
        assert_eq!(none.code(), Code::ValidationError);
        assert_eq!(
            file(b"--xyz--", "xyz").unwrap_err().code(),
            Code::ValidationError
        );
        let two = file(&form(&[("file", b"x"), ("file", b"y")]), "xyz").unwrap_err();
        assert_eq!(two.code(), Code::ValidationError);
        let whole = form(&[("file", b"content")]);
        assert_eq!(file(&whole, "abc").unwrap_err().code(), Code::BadRequest);
        for end in 0..whole.len() - 4 {
            let cut = file(&whole[..end], "xyz").unwrap_err();
            assert_eq!(cut.code(), Code::BadRequest, "{end}");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_content_it_comes_out_as_it_went_in(content in prop::collection::vec(
            prop::sample::select(&b"\r\n-xy\0a"[..]), 0..60,
        )) {
            let body = form(&[("file", &content)]);
            match file(&body, "xyz") {
                Ok(found) => prop_assert_eq!(found, &content[..]),
                // No client picks a boundary that is in the content.
                Err(_) => prop_assert!(content.windows(3).any(|w| w == b"--x")),
            }
        }

        #[test]
        fn no_bytes_whatever_make_it_panic(bytes in prop::collection::vec(
            prop::sample::select(&b"\r\n-xyz: ;="[..]), 0..80,
        )) {
            let _ = file(&bytes, "xyz");
        }
    }
}
