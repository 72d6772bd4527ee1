//! Mails as messages of RFC 5322 with two equal parts (`multipart/alternative`). Messages are ASCII.

use std::time::{Duration, SystemTime};

use core_domain::kernel::OutboxId;
use core_domain::port::{Mail, Mailbox};
use email_encoding::headers::rfc2047;
use email_encoding::headers::writer::EmailWriter;
use lettre::Message;
use lettre::message::header::{
    ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue, Subject,
};
use lettre::message::{self, Body, MultiPart, SinglePart};

/// Maximum length of an unencoded subject in characters.
const MAX_PLAIN_CHARS: usize = 66;

/// Maximum length of a line in octets, without the line end, that every server accepts (RFC 5322).
const MAX_LINE_BYTES: usize = 998;

/// The mail cannot become a message, because an address is not valid in SMTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address of the sender or the recipient is not valid in SMTP")]
pub struct MessageError;

/// Returns the text of the message. The same mail with the same id always has the same text, because `Message-ID` and
/// `Date` come from the id.
///
/// # Errors
/// [`MessageError`] if an address is not valid in SMTP.
pub fn mime_message(id: &OutboxId, mail: &Mail, from: &Mailbox) -> Result<Vec<u8>, MessageError> {
    Ok(message(id, mail, from)?.formatted())
}

/// Returns the message with its envelope.
pub(crate) fn message(id: &OutboxId, mail: &Mail, from: &Mailbox) -> Result<Message, MessageError> {
    let address = |text: &str| text.parse().map_err(|_| MessageError);
    let sender = address(from.address().as_str())?;
    let recipient = address(mail.to.as_str())?;
    let parts = MultiPart::alternative()
        .boundary(format!("=_{id}"))
        .singlepart(part(ContentType::TEXT_PLAIN, &mail.text))
        .singlepart(part(ContentType::TEXT_HTML, &mail.html));
    // Prevents automatic replies (RFC 3834).
    let name = HeaderName::new_from_ascii_str("Auto-Submitted");
    let automatic = HeaderValue::new(name, "auto-generated".to_owned());
    Message::builder()
        .from(message::Mailbox::new(
            from.name().map(str::to_owned),
            sender,
        ))
        .to(message::Mailbox::new(None, recipient))
        .raw_header(subject(&mail.subject))
        .date(date(id))
        .message_id(Some(format!("<{id}@{}>", from.domain())))
        .raw_header(automatic)
        .multipart(parts)
        .map_err(|_| MessageError)
}

/// Returns the time at which the mail was queued, which its id (UUIDv7) contains. An id of another kind has none; the
/// current time would make two messages of one mail different.
fn date(id: &OutboxId) -> SystemTime {
    let uuid: Option<uuid::Uuid> = id.as_str().parse().ok();
    let time = uuid.and_then(|uuid| uuid.get_timestamp());
    let seconds = time.map_or(0, |time| time.to_unix().0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Returns the header `Subject`. lettre encodes only the words that are not ASCII. It leaves words longer than a line,
/// control characters and text that looks encoded as they are, so such subjects are encoded as a whole.
fn subject(text: &str) -> HeaderValue {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.trim().chars().map(blank).collect();
    let is_plain = text.is_ascii() && text.len() <= MAX_PLAIN_CHARS && !text.contains("=?");
    let mut value = String::new();
    let mut writer = EmailWriter::new(&mut value, "Subject: ".len(), 0, false);
    if is_plain || rfc2047::encode(&text, &mut writer).is_err() {
        return HeaderValue::new(Subject::name(), text);
    }
    drop(writer);
    HeaderValue::dangerous_new_pre_encoded(Subject::name(), text, value)
}

/// Returns a part. ASCII text with lines that every server accepts is not encoded, so that the links in a mail file are
/// readable. Other text is quoted-printable. lettre alone would encode every text with a line longer than 76 characters,
/// and choose base64 for some of it.
fn part(kind: ContentType, text: &str) -> SinglePart {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text: String = text.lines().flat_map(|line| [line, "\r\n"]).collect();
    let is_plain = |b: u8| b"\t\r\n".contains(&b) || (32..127).contains(&b);
    let part = SinglePart::builder().header(kind);
    if text.bytes().all(is_plain) && text.lines().all(|line| line.len() <= MAX_LINE_BYTES) {
        let encoding = ContentTransferEncoding::SevenBit;
        return part.body(Body::dangerous_pre_encoded(text.into_bytes(), encoding));
    }
    part.header(ContentTransferEncoding::QuotedPrintable)
        .body(text)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use core_domain::kernel::{Email, Timestamp};
    use core_domain::testing::SeededEntropy;
    use proptest::prelude::*;

    use super::*;

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
        let message = mime_message(&id(), &mail, &from.parse().unwrap()).unwrap();
        String::from_utf8(message).unwrap()
    }

    /// Returns the headers, unfolded and with decoded words.
    fn headers(message: &str) -> Vec<(String, String)> {
        let (head, _) = message.split_once("\r\n\r\n").unwrap();
        let head = head.replace("?=\r\n =?utf-8?b?", "\u{0}");
        let lines = head.replace("\r\n ", " ");
        let lines = lines.lines().map(|line| line.split_once(": ").unwrap());
        lines
            .map(|(name, value)| (name.to_owned(), decode_words(value)))
            .collect()
    }

    fn decode_words(value: &str) -> String {
        let Some((before, rest)) = value.split_once("=?utf-8?b?") else {
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
            "From: Core <no-reply@core.test>\r\nTo: ada@example.org\r\nSubject: Verify your address\r\n\
             Date: Fri, 15 Jan 2027 08:00:00 +0000\r\nMessage-ID: <{id}@core.test>\r\n\
             Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: multipart/alternative;\r\n boundary=\"=_{id}\"\r\n\
             \r\n--=_{id}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n\
             {link}\r\n\
             \r\n--=_{id}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n\
             <p>{link}</p>\r\n\
             \r\n--=_{id}--\r\n"
        );
        assert_eq!(written, expected);
    }

    #[test]
    fn a_long_link_is_readable_in_the_message() {
        let link = format!("https://core.test/verify?token={}", "a".repeat(900));
        let written = message("Verify your address", &link, "Core <no-reply@core.test>");
        assert!(written.contains(&format!("\r\n{link}\r\n")), "{written}");
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
            "Auto-Submitted",
            "MIME-Version",
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
        let long = "x".repeat(MAX_LINE_BYTES + 1);
        assert_eq!(text(&message("s", &long, "a@b.test")), long + "\r\n");
    }

    proptest! {
        #[test]
        fn every_sender_and_recipient_survives(
            name in "[^\\p{C}<>\"]{1,100}", local in "[a-z0-9!#$%&'*+/=?^_`{|}~-]{1,64}", label in "[a-z0-9]{1,63}",
        ) {
            let address = format!("{local}@{label}.example");
            let mailbox: Mailbox = format!("{name} <{address}>").parse().unwrap();
            let mail = Mail {
                to: mailbox.address().clone(),
                subject: String::new(),
                text: String::new(),
                html: String::new(),
            };
            let message = super::message(&id(), &mail, &mailbox).unwrap();
            let envelope = message.envelope();
            let ends = [envelope.from(), envelope.to().first()];
            prop_assert!(ends.iter().all(|end| end.unwrap().to_string() == address));
            let written = String::from_utf8(message.formatted()).unwrap();
            prop_assert!(written.is_ascii());
            prop_assert!(written.lines().all(|line| line.len() <= MAX_LINE_BYTES));
            prop_assert_eq!(value(&written, "To"), address.as_str());
            let from = value(&written, "From");
            let from = if from.starts_with('"') { from.replace("\\\\", "\\") } else { from };
            prop_assert_eq!(from.parse::<Mailbox>().unwrap(), mailbox, "{}", written);
        }

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
