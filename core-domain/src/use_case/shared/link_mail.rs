//! The form that all mails have: a paragraph, a link, and a note.

use crate::kernel::Email;
use crate::port::Mail;

/// The words of a mail.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case) struct LinkMail<'a> {
    /// The subject, on one line.
    pub(in crate::use_case) subject: &'a str,
    /// The first paragraph.
    pub(in crate::use_case) intro: &'a str,
    /// The words of the link.
    pub(in crate::use_case) button: &'a str,
    /// The last paragraph.
    pub(in crate::use_case) note: &'a str,
}

impl LinkMail<'_> {
    /// Returns the mail to an address as text and as HTML. Without a link it has only the paragraphs.
    pub(in crate::use_case) fn to(&self, to: &Email, link: Option<&str>) -> Mail {
        let [subject, intro, button, note] =
            [self.subject, self.intro, self.button, self.note].map(escape_html);
        let (link_text, link_html) = match link {
            Some(link) => {
                let safe = escape_html(link);
                let html = format!("<p><a href=\"{safe}\">{button}</a></p><p>{safe}</p>");
                (format!("{link}\n\n"), html)
            }
            None => (String::new(), String::new()),
        };
        Mail {
            to: to.clone(),
            subject: self.subject.to_owned(),
            text: format!("{}\n\n{link_text}{}\n", self.intro, self.note),
            html: format!(
                "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{subject}</title></head>\
                 <body style=\"font-family:sans-serif;line-height:1.5\"><p>{intro}</p>{link_html}<p>{note}</p></body></html>",
            ),
        }
    }
}

/// Escapes a text for use in an HTML element or attribute.
fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_escaped_in_html_alone() {
        let mail = LinkMail {
            subject: "A & B",
            intro: "<b>",
            button: "\"Open\"",
            note: "it's",
        };
        let to = Email::parse("ada@example.org").unwrap();
        let sent = mail.to(&to, Some("https://a.example/?x=1&y=2"));
        assert_eq!(sent.subject, "A & B");
        assert_eq!(sent.text, "<b>\n\nhttps://a.example/?x=1&y=2\n\nit's\n");
        assert!(sent.html.contains(
            "<p>&lt;b&gt;</p><p><a href=\"https://a.example/?x=1&amp;y=2\">&quot;Open&quot;</a></p>"
        ));
        assert_eq!(mail.to(&to, None).text, "<b>\n\nit's\n");
    }
}
