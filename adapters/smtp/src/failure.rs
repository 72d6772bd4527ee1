//! Why a mail did not go out, and whether it is worth another try.

use core_domain::port::{Cause, Mail, MailError};
use lettre::transport::smtp::Error;

/// Replies by which a server says that it wants another login (RFC 4954): not the mail is refused, we are.
const LOGIN_REPLIES: [&str; 6] = ["432", "454", "530", "534", "535", "538"];

/// The most characters of a server's reply that are kept.
const LONGEST_REPLY: usize = 200;

/// The shortest word of a mail that is a secret, such as a code or a link.
const SHORTEST_SECRET: usize = 6;

/// Why a mail did not go out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The server cannot be reached, or did not speak SMTP.
    #[error("the mail server cannot be reached: {0}")]
    Connection(String),
    /// The server is not the one we trust, or offers no TLS.
    #[error("no TLS with the mail server: {0}")]
    Tls(String),
    /// The server does not know us.
    #[error("the mail server refuses our login: {0}")]
    Login(String),
    /// The server, for now.
    #[error("the mail server takes no mail for now: {0}")]
    Later(String),
    /// The server, for good.
    #[error("the mail server refuses the mail: {0}")]
    Never(String),
    /// The address is none that SMTP knows.
    #[error("the address cannot be written in SMTP")]
    Address,
    /// The server took too long.
    #[error("the mail server did not answer in time")]
    TimedOut,
}

impl Failure {
    /// A failure before a mail was spoken of; none of them is the mail's fault.
    pub(crate) fn of_connection(error: &Error) -> Self {
        let text = readable(&error.to_string());
        if error.is_tls() {
            Self::Tls(text)
        } else if asks_for_login(error) {
            Self::Login(text)
        } else {
            Self::Connection(text)
        }
    }

    /// A login that failed.
    pub(crate) fn of_login(error: &Error, password: &str) -> Self {
        let text = readable(&error.to_string());
        Self::Login(text.replace(password, ".."))
    }

    /// A mail that was not taken.
    pub(crate) fn of_mail(error: &Error, mail: &Mail) -> Self {
        let text = without_secrets(&readable(&error.to_string()), mail);
        if asks_for_login(error) {
            Self::Login(text)
        } else if error.is_permanent() {
            Self::Never(text)
        } else if error.is_transient() {
            Self::Later(text)
        } else {
            Self::Connection(text)
        }
    }

    /// Whether somebody who operates the installation must do something.
    pub(crate) const fn is_misconfiguration(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::Login(_))
    }
}

impl From<Failure> for MailError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Never(_) | Failure::Address => Self::Permanent(Cause::new(failure)),
            _ => Self::Transient(Cause::new(failure)),
        }
    }
}

fn asks_for_login(error: &Error) -> bool {
    let code = error.status().map(|code| code.to_string());
    code.is_some_and(|code| LOGIN_REPLIES.contains(&&*code))
}

/// One line, not too long.
fn readable(text: &str) -> String {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(line).take(LONGEST_REPLY).collect()
}

/// Filters repeat what they dislike in a mail. What its text says stays out of the log.
fn without_secrets(reply: &str, mail: &Mail) -> String {
    let of_mail = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let to = mail.to.as_str();
        let long = bare.len() >= SHORTEST_SECRET && !to.contains(bare);
        word.contains("://") || (long && (mail.text.contains(bare) || mail.html.contains(bare)))
    };
    let words = reply.split(' ');
    let words = words.map(|word| if of_mail(word) { "[..]" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::Email;

    use super::*;

    #[test]
    fn a_reply_is_one_line_and_repeats_nothing_of_the_mail() {
        let link = "https://core.test/verify?token=Abc123Def456";
        let mail = Mail {
            to: Email::parse("ada@example.org").unwrap(),
            subject: "Hello".to_owned(),
            text: format!("Open {link} or enter 493817."),
            html: String::new(),
        };
        let reply =
            format!("554 5.7.1 <ada@example.org> spam: {link}, \"Abc123Def456\" (493817)\r\nbye");
        assert_eq!(
            without_secrets(&readable(&reply), &mail),
            "554 5.7.1 <ada@example.org> spam: [..] [..] [..]  bye"
        );
        assert_eq!(readable(&"x".repeat(1_000)).len(), LONGEST_REPLY);
    }
}
