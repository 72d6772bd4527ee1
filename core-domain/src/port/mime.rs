//! The text form in which mails are sent and stored: an ASCII message of RFC 5322 with two equal parts
//! (`multipart/alternative`).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Mail, Mailbox};
use crate::kernel::OutboxId;

/// Maximum length of a line in octets, without the line end, that every server accepts (RFC 5322).
const MAX_LINE_BYTES: usize = 998;

/// Maximum length of a line of quoted-printable text in characters, including the `=` that continues it (RFC 2045).
const MAX_QUOTED_LINE_CHARS: usize = 76;

/// Maximum length of an unencoded subject or name in characters.
const MAX_PLAIN_CHARS: usize = 66;

/// Maximum length of the text in one encoded word, in octets. With its frame and the longest header name, it fits into
/// a line of 76 characters.
const MAX_ENCODED_WORD_BYTES: usize = 39;

/// Returns the message. The same mail with the same id always has the same text, because `Message-ID` and `Date` come
/// from the id.
#[must_use]
pub fn mime_message(id: &OutboxId, mail: &Mail, from: &Mailbox) -> String {
    let mut message = String::with_capacity(1024 + mail.text.len() + mail.html.len());
    header(&mut message, "From", &sender(from));
    header(&mut message, "To", mail.to.as_str());
    header(&mut message, "Subject", &unstructured(&mail.subject));
    if let Some(date) = date(id) {
        header(&mut message, "Date", &date);
    }
    let message_id = format!("<{id}@{}>", from.domain());
    header(&mut message, "Message-ID", &message_id);
    header(&mut message, "MIME-Version", "1.0");
    // Prevents automatic replies (RFC 3834).
    header(&mut message, "Auto-Submitted", "auto-generated");
    let boundary = format!("=_{id}");
    let kind = format!("multipart/alternative;\r\n boundary=\"{boundary}\"");
    header(&mut message, "Content-Type", &kind);
    for (kind, text) in [("plain", &mail.text), ("html", &mail.html)] {
        part(&mut message, &boundary, kind, text);
    }
    message.push_str(&format!("\r\n--{boundary}--\r\n"));
    message
}

fn header(message: &mut String, name: &str, value: &str) {
    message.push_str(name);
    message.push_str(": ");
    message.push_str(value);
    message.push_str("\r\n");
}

fn part(message: &mut String, boundary: &str, kind: &str, text: &str) {
    let (encoding, body) = body(text);
    message.push_str(&format!("\r\n--{boundary}\r\n"));
    header(
        message,
        "Content-Type",
        &format!("text/{kind}; charset=utf-8"),
    );
    header(message, "Content-Transfer-Encoding", encoding);
    message.push_str("\r\n");
    message.push_str(&body);
}

/// Returns the time at which the message was queued, which its id (UUIDv7) contains.
fn date(id: &OutboxId) -> Option<String> {
    let uuid: uuid::Uuid = id.as_str().parse().ok()?;
    let (seconds, _) = uuid.get_timestamp()?.to_unix();
    let instant = jiff::Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_string(&instant)
        .ok()
}

fn sender(from: &Mailbox) -> String {
    match from.name() {
        Some(name) => format!("{}\r\n <{}>", phrase(name), from.address()),
        None => from.address().to_string(),
    }
}

/// Returns a name in the form in which it precedes an address (RFC 5322 `phrase`).
fn phrase(name: &str) -> String {
    let is_atom =
        |c: char| c.is_ascii_alphanumeric() || c == ' ' || "!#$%&'*+-/^_`{|}~".contains(c);
    if name.len() <= MAX_PLAIN_CHARS && name.chars().all(is_atom) {
        name.to_owned()
    } else {
        encoded_words(name)
    }
}

/// Returns the value of a header that people read, always on one line.
fn unstructured(text: &str) -> String {
    let text = one_line(text);
    let plain = |c: char| c.is_ascii_graphic() || c == ' ';
    let fits = text.len() <= MAX_PLAIN_CHARS;
    if fits && text.chars().all(plain) && !text.contains("=?") {
        text.into_owned()
    } else {
        encoded_words(&text)
    }
}

fn one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if text.chars().any(char::is_control) {
        let blank = |c: char| if c.is_control() { ' ' } else { c };
        Cow::Owned(text.chars().map(blank).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the text as base64 words of RFC 2047, one per line. No word splits a character.
fn encoded_words(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut chunk = String::new();
    for c in text.chars() {
        if chunk.len() + c.len_utf8() > MAX_ENCODED_WORD_BYTES {
            words.push(std::mem::take(&mut chunk));
        }
        chunk.push(c);
    }
    words.push(chunk);
    let words = words.iter().map(|word| STANDARD.encode(word));
    let words: Vec<String> = words.map(|word| format!("=?UTF-8?B?{word}?=")).collect();
    words.join("\r\n ")
}

/// Returns the encoding and the encoded text. ASCII text is not encoded, so that the links in a mail file are readable.
fn body(text: &str) -> (&'static str, String) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = text.lines().collect();
    let plain = |line: &&str| {
        line.len() <= MAX_LINE_BYTES && line.bytes().all(|b| b == b'\t' || (32..127).contains(&b))
    };
    if lines.iter().all(plain) {
        return ("7bit", with_line_ends(lines.into_iter().map(str::to_owned)));
    }
    (
        "quoted-printable",
        with_line_ends(lines.into_iter().map(quoted_printable)),
    )
}

fn with_line_ends(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| line + "\r\n").collect()
}

/// Returns a line as quoted-printable text (RFC 2045).
fn quoted_printable(line: &str) -> String {
    let mut quoted = String::with_capacity(line.len() + line.len() / 8);
    let mut width = 0;
    let last = line.len().saturating_sub(1);
    for (at, byte) in line.bytes().enumerate() {
        let blank_inside = (byte == b' ' || byte == b'\t') && at < last;
        let literal = blank_inside || (byte.is_ascii_graphic() && byte != b'=');
        let next = if literal { 1 } else { 3 };
        if width + next >= MAX_QUOTED_LINE_CHARS {
            quoted.push_str("=\r\n");
            width = 0;
        }
        if literal {
            quoted.push(char::from(byte));
        } else {
            quoted.push_str(&format!("={byte:02X}"));
        }
        width += next;
    }
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{Email, Timestamp};
    use crate::testing::SeededEntropy;

    fn id() -> OutboxId {
        OutboxId::generate(
            Timestamp::from_seconds(1_800_000_000),
            &SeededEntropy::new(1),
        )
    }

    fn message(subject: &str, text: &str, from: &str) -> String {
        let mail = Mail {
            to: Email::parse("ada@example.org").unwrap(),
            subject: subject.to_owned(),
            text: text.to_owned(),
            html: format!("<p>{text}</p>"),
        };
        mime_message(&id(), &mail, &from.parse().unwrap())
    }

    /// Returns the headers, unfolded and with decoded words.
    fn headers(message: &str) -> Vec<(String, String)> {
        let (head, _) = message.split_once("\r\n\r\n").unwrap();
        let head = head.replace("?=\r\n =?UTF-8?B?", "\u{0}");
        let lines = head.replace("\r\n ", " ");
        let lines = lines.lines().map(|line| line.split_once(": ").unwrap());
        lines
            .map(|(name, value)| (name.to_owned(), decoded(value)))
            .collect()
    }

    fn decoded(value: &str) -> String {
        let Some((before, rest)) = value.split_once("=?UTF-8?B?") else {
            return value.to_owned();
        };
        let (words, after) = rest.split_once("?=").unwrap();
        let words = words.split('\u{0}').map(|word| {
            // Each word must be valid UTF-8 on its own.
            String::from_utf8(STANDARD.decode(word).unwrap()).unwrap()
        });
        format!("{before}{}{after}", words.collect::<String>())
    }

    fn value(message: &str, name: &str) -> String {
        let headers = headers(message);
        let mut of_name = headers.into_iter().filter(|(found, _)| found == name);
        let (_, value) = of_name.next().unwrap();
        assert!(of_name.next().is_none(), "{name} occurs twice");
        value
    }

    /// Returns the decoded text of the first part.
    fn text(message: &str) -> String {
        let boundary = format!("\r\n--=_{}", id());
        let part = message.split(&*boundary).nth(1).unwrap();
        let (head, body) = part.split_once("\r\n\r\n").unwrap();
        if head.ends_with("7bit") {
            return body.to_owned();
        }
        assert!(head.ends_with("quoted-printable"), "{head}");
        let mut bytes = Vec::new();
        let joined = body.replace("=\r\n", "");
        let mut rest = joined.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'=' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => byte,
            });
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_mail_becomes_the_same_message_with_two_parts_every_time() {
        let link = "https://core.test/verify?token=Abc123==&next=%2F";
        let written = message("Verify your address", link, "Core <no-reply@core.test>");
        assert_eq!(
            written,
            message("Verify your address", link, "Core <no-reply@core.test>")
        );
        let id = id();
        let expected = format!(
            "From: Core\r\n <no-reply@core.test>\r\nTo: ada@example.org\r\nSubject: Verify your address\r\n\
             Date: Fri, 15 Jan 2027 08:00:00 -0000\r\nMessage-ID: <{id}@core.test>\r\nMIME-Version: 1.0\r\n\
             Auto-Submitted: auto-generated\r\nContent-Type: multipart/alternative;\r\n boundary=\"=_{id}\"\r\n\
             \r\n--=_{id}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n\
             {link}\r\n\
             \r\n--=_{id}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n\
             <p>{link}</p>\r\n\
             \r\n--=_{id}--\r\n"
        );
        assert_eq!(written, expected);
    }

    #[test]
    fn a_subject_or_a_name_cannot_inject_a_header() {
        let written = message(
            "Hello\r\nBcc: eve@example.org\n\nand a body",
            "text",
            "Grüße von Ada, 'Core' <no-reply@core.test>",
        );
        let names: Vec<String> = headers(&written)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        let expected = [
            "From",
            "To",
            "Subject",
            "Date",
            "Message-ID",
            "MIME-Version",
            "Auto-Submitted",
            "Content-Type",
        ];
        assert_eq!(names, expected);
        let subject = value(&written, "Subject");
        assert_eq!(subject, "Hello  Bcc: eve@example.org  and a body");
        let from = value(&written, "From");
        assert_eq!(from, "Grüße von Ada, 'Core' <no-reply@core.test>");
    }

    #[test]
    fn text_that_looks_encoded_is_encoded_again() {
        let subject = "=?UTF-8?B?aGk=?=";
        assert_eq!(value(&message(subject, "", "a@b.test"), "Subject"), subject);
    }

    #[test]
    fn line_ends_are_normalized_and_trailing_blanks_are_kept() {
        let written = message("s", "a\nb\r\nc\rd", "a@b.test");
        assert_eq!(text(&written), "a\r\nb\r\nc\r\nd\r\n");
        let written = message("s", "é \n\té\t\n", "a@b.test");
        assert_eq!(text(&written), "é \r\n\té\t\r\n");
        let long = "x".repeat(999);
        assert_eq!(text(&message("s", &long, "a@b.test")), long + "\r\n");
    }

    proptest! {
        #[test]
        fn every_subject_and_text_survives_in_lines_of_limited_length(
            subject in "\\PC{0,200}", text_in in "(\\PC{0,40}|[a-z=é😀 \t]{0,300}\n){0,4}",
        ) {
            let written = message(&subject, &text_in, "Core <no-reply@core.test>");
            prop_assert!(written.is_ascii());
            prop_assert!(!written.replace("\r\n", "").contains(['\r', '\n']));
            let head = written.split("\r\n\r\n").next().unwrap_or_default();
            let quoted = !written.contains("7bit");
            prop_assert!(head.lines().all(|line| line.len() <= 78), "{}", head);
            prop_assert!(written.lines().all(|line| line.len() <= MAX_LINE_BYTES));
            prop_assert!(!quoted || written.lines().all(|line| line.len() <= 78));
            prop_assert_eq!(value(&written, "Subject"), subject.trim());
            let lines: String = text_in.lines().map(|line| format!("{line}\r\n")).collect();
            prop_assert_eq!(text(&written), lines);
        }
    }
}
