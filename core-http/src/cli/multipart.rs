//! Extracts the field `file` of a form (RFC 7578) while the body is being received.

use core_domain::kernel::{Code, Error, Result};

use super::media::parameter;

const FIELD: &str = "file";
const LINE_END: &[u8] = b"\r\n";
const HEADERS_END: &[u8] = b"\r\n\r\n";

/// Maximum size of the headers of a part, in bytes.
const MAX_HEADERS: usize = 16 * 1024;

/// Extracts the bytes of the field `file` from a form, piece by piece.
#[derive(Debug)]
pub(super) struct FormFile {
    /// The delimiter before each part, and after the last one.
    delimiter: Vec<u8>,
    state: State,
    /// The bytes that were fed but are not parsed yet.
    buffer: Vec<u8>,
    has_file: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// After a delimiter. Two dashes end the form.
    AfterDelimiter,
    /// In the remainder of the delimiter line, which may contain blanks.
    Padding,
    Headers,
    Content {
        is_file: bool,
    },
    End,
}

impl FormFile {
    pub(super) fn new(boundary: &str) -> Self {
        Self {
            delimiter: format!("\r\n--{boundary}").into_bytes(),
            state: State::Preamble,
            // The first delimiter needs no line end before it, so this adds one.
            buffer: LINE_END.to_vec(),
            has_file: false,
        }
    }

    /// Parses the next bytes of the body, and appends those of the file to `file`.
    ///
    /// # Errors
    /// `BAD_REQUEST` if the body is not a valid form; `VALIDATION_ERROR` for a second file.
    pub(super) fn feed(&mut self, bytes: &[u8], file: &mut Vec<u8>) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        let mut used = 0;
        while let Some(step) = self.step(used, file)? {
            used += step;
        }
        self.buffer.drain(..used);
        Ok(())
    }

    /// Checks the form at the end of the body.
    ///
    /// # Errors
    /// `BAD_REQUEST` if the form is not complete; `VALIDATION_ERROR` if it has no field `file`.
    pub(super) fn finish(self) -> Result<()> {
        if self.state != State::End {
            return Err(not_a_form());
        }
        if self.has_file {
            Ok(())
        } else {
            Err(field_error("required", "is required"))
        }
    }

    /// Parses one element at `from`. Returns the number of bytes used, or `None` if more bytes are needed.
    fn step(&mut self, from: usize, file: &mut Vec<u8>) -> Result<Option<usize>> {
        let rest = &self.buffer[from..];
        match self.state {
            State::Preamble => Ok(self.read_content(from, None)),
            State::AfterDelimiter => match rest {
                [] | [_] => Ok(None),
                [b'-', b'-', ..] => Ok(self.go(State::End, 2)),
                _ => Ok(self.go(State::Padding, 0)),
            },
            State::Padding => match rest {
                [b' ' | b'\t', ..] => Ok(Some(1)),
                // The line end belongs to the headers, because a part without headers begins with an empty line.
                [b'\r', b'\n', ..] => Ok(self.go(State::Headers, 0)),
                [] | [b'\r'] => Ok(None),
                _ => Err(not_a_form()),
            },
            State::Headers => self.headers(from),
            State::Content { is_file } => Ok(self.read_content(from, is_file.then_some(file))),
            State::End if rest.is_empty() => Ok(None),
            State::End => Ok(Some(rest.len())),
        }
    }

    fn go(&mut self, state: State, used: usize) -> Option<usize> {
        self.state = state;
        Some(used)
    }

    fn headers(&mut self, from: usize) -> Result<Option<usize>> {
        let rest = &self.buffer[from..];
        let Some(end) = find(rest, HEADERS_END) else {
            let too_long = rest.len() > MAX_HEADERS || find(rest, &self.delimiter).is_some();
            return if too_long {
                Err(not_a_form())
            } else {
                Ok(None)
            };
        };
        let headers = std::str::from_utf8(&rest[..end]).map_err(|_| not_a_form())?;
        let is_file = name(headers).as_deref() == Some(FIELD);
        if end > MAX_HEADERS || find(&rest[..end], &self.delimiter).is_some() {
            return Err(not_a_form());
        }
        if is_file && std::mem::replace(&mut self.has_file, true) {
            return Err(field_error("not_unique", "must occur exactly once"));
        }
        Ok(self.go(State::Content { is_file }, end + HEADERS_END.len()))
    }

    /// Consumes the bytes before the next delimiter, and appends them to `file` if given.
    fn read_content(&mut self, from: usize, file: Option<&mut Vec<u8>>) -> Option<usize> {
        let rest = &self.buffer[from..];
        let end = find(rest, &self.delimiter);
        // The last bytes may be the start of a delimiter.
        let whole = rest.len().saturating_sub(self.delimiter.len() - 1);
        let content = &rest[..end.unwrap_or(whole)];
        if let Some(file) = file {
            file.extend_from_slice(content);
        }
        let used = content.len();
        match end {
            Some(_) => self.go(State::AfterDelimiter, used + self.delimiter.len()),
            None => (used > 0).then_some(used),
        }
    }
}

/// Returns the name of a part, from its headers.
fn name(headers: &str) -> Option<String> {
    headers.split("\r\n").find_map(|line| {
        let (header, value) = line.split_once(':')?;
        let tells = header.trim().eq_ignore_ascii_case("content-disposition");
        tells.then(|| parameter(value, "name")).flatten()
    })
}

/// Returns the first position of `mark`, which must begin with a carriage return.
fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(next) = bytes[from..].iter().position(|byte| *byte == b'\r') {
        let at = from + next;
        if bytes[at..].starts_with(mark) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

fn field_error(code: &'static str, message: &str) -> Error {
    Error::invalid(FIELD, code, message)
}

fn not_a_form() -> Error {
    Error::refused(
        Code::BadRequest,
        "The body is not a valid form, or it is incomplete.",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// Returns the file of a body that arrives in pieces of this size.
    fn file_in(pieces: usize, body: &[u8], boundary: &str) -> Result<Vec<u8>> {
        let (mut form, mut file) = (FormFile::new(boundary), Vec::new());
        for piece in body.chunks(pieces) {
            form.feed(piece, &mut file)?;
        }
        form.finish().map(|()| file)
    }

    fn file(body: &[u8], boundary: &str) -> Result<Vec<u8>> {
        file_in(usize::MAX, body, boundary)
    }

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
    fn part_headers_are_bounded() {
        let mut form = FormFile::new("xyz");
        let mut file = Vec::new();
        form.feed(b"--xyz\r\n", &mut file).unwrap();
        let refused = (0..100).find_map(|_| form.feed(&[b'a'; 1_024], &mut file).err());
        assert_eq!(refused.unwrap().code(), Code::BadRequest);
        assert!(form.buffer.len() <= MAX_HEADERS + 2_048);
    }

    #[test]
    fn only_the_start_of_a_delimiter_is_buffered() {
        let mut form = FormFile::new("xyz");
        let mut file = Vec::new();
        let head = b"--xyz\r\nContent-Disposition: form-data; name=file\r\n\r\n";
        form.feed(head, &mut file).unwrap();
        form.feed(&[b'a'; 10_000], &mut file).unwrap();
        assert!(form.buffer.len() < form.delimiter.len());
        assert_eq!(file.len() + form.buffer.len(), 10_000);
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
    fn forms_without_a_file_with_two_files_or_without_an_end_are_refused() {
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

    /// A change of a form.
    #[derive(Clone, Debug)]
    enum Mutation {
        Set(Index, u8),
        Truncate(Index),
        /// Inserts a copy of a part of the form somewhere else.
        Copy(Index, Index, usize),
        Remove(Index, usize),
        Insert(Index, &'static [u8]),
    }

    const INSERTS: &[&[u8]] = &[
        b"\r\n--xyz\r\n",
        b"\r\n--xyz--",
        b"\r\n--xy",
        b"\r\n\r\n",
        b"--",
        b"\0",
        b"\xff",
        b"Content-Disposition: form-data; name=\"file\"\r\n",
    ];

    fn mutation() -> impl Strategy<Value = Mutation> {
        let (at, to) = (any::<Index>, any::<Index>);
        prop_oneof![
            (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
            at().prop_map(Mutation::Truncate),
            (at(), to(), 1..200_usize).prop_map(|(a, b, n)| Mutation::Copy(a, b, n)),
            (at(), 1..50_usize).prop_map(|(at, n)| Mutation::Remove(at, n)),
            (at(), prop::sample::select(INSERTS)).prop_map(|(at, part)| Mutation::Insert(at, part)),
        ]
    }

    fn mutate(form: &mut Vec<u8>, mutation: &Mutation) {
        let length = form.len();
        if length == 0 {
            return;
        }
        let part = |at: &Index, wanted: usize| {
            let at = at.index(length);
            at..length.min(at + wanted)
        };
        match mutation {
            Mutation::Set(at, byte) => form[at.index(length)] = *byte,
            Mutation::Truncate(at) => form.truncate(at.index(length)),
            Mutation::Copy(from, to, wanted) => {
                let copy = form[part(from, *wanted)].to_vec();
                let to = to.index(length);
                form.splice(to..to, copy);
            }
            Mutation::Remove(at, wanted) => drop(form.drain(part(at, *wanted))),
            Mutation::Insert(at, bytes) => {
                let at = at.index(length);
                form.splice(at..at, bytes.iter().copied());
            }
        }
    }

    /// Feeds a form in pieces, and checks after each piece that the reader stores only unparsed headers or the start of
    /// a delimiter.
    fn file_within_memory(pieces: &[usize], body: &[u8]) -> Result<Vec<u8>> {
        let (mut form, mut file) = (FormFile::new("xyz"), Vec::new());
        let mut rest = body;
        let mut sizes = pieces.iter().cycle();
        while !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| *size).min(rest.len());
            let (piece, next) = rest.split_at(size);
            form.feed(piece, &mut file)?;
            rest = next;
            let max = match form.state {
                State::Headers => MAX_HEADERS + size,
                _ => form.delimiter.len(),
            };
            assert!(form.buffer.len() <= max, "{:?}", form.state);
            assert!(file.len() <= body.len());
        }
        form.finish().map(|()| file)
    }

    proptest! {
        #[test]
        fn a_mutated_form_has_one_result_for_all_pieces_and_never_an_internal_error(
            before in prop::collection::vec(any::<u8>(), 0..40),
            content in prop::collection::vec(any::<u8>(), 0..400),
            mutations in prop::collection::vec(mutation(), 0..5),
            pieces in prop::collection::vec(1..90_usize, 1..5),
        ) {
            let mut body = form(&[("note", &before), ("file", &content), ("z", b"")]);
            for mutation in &mutations {
                mutate(&mut body, mutation);
            }
            let code = |found: Result<Vec<u8>>| found.map_err(|error| error.code());
            let whole = code(file(&body, "xyz"));
            prop_assert_eq!(&whole, &code(file_within_memory(&pieces, &body)));
            prop_assert_eq!(&whole, &code(file_within_memory(&[1], &body)));
            match whole {
                // The file is a part of the body.
                Ok(found) => prop_assert!(
                    found.is_empty() || body.windows(found.len()).any(|part| part == found)
                ),
                Err(code) => {
                    prop_assert!(matches!(code, Code::BadRequest | Code::ValidationError));
                }
            }
        }

        #[test]
        fn file_content_is_extracted_unchanged(content in prop::collection::vec(
            prop::sample::select(&b"\r\n-xy\0a"[..]), 0..60,
        )) {
            let body = form(&[("file", &content)]);
            match file(&body, "xyz") {
                Ok(found) => {
                    for pieces in 1..=9 {
                        let same = file_in(pieces, &body, "xyz");
                        prop_assert_eq!(&same.unwrap(), &found, "pieces of {}", pieces);
                    }
                    prop_assert_eq!(found, content);
                }
                // Clients choose a boundary that does not occur in the content.
                Err(_) => prop_assert!(content.windows(3).any(|w| w == b"--x")),
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(
            prop::sample::select(&b"\r\n-xyz: ;="[..]), 0..80,
        )) {
            let whole = file(&bytes, "xyz").map_err(|error| error.code());
            let pieces = file_in(1, &bytes, "xyz").map_err(|error| error.code());
            prop_assert_eq!(whole, pieces);
        }
    }
}
