//! The reasons why a mail could not be sent, and whether to retry.

use std::error::Error as _;
use std::io;

use core_domain::port::{Cause, Mail, MailError};
use lettre::transport::smtp::Error;

use crate::message::MessageError;

/// Reply codes that ask for another login (RFC 4954). The server refuses the client, not the mail.
const LOGIN_REPLIES: [&str; 6] = ["432", "454", "530", "534", "535", "538"];

/// The maximum number of characters of a server's reply that are kept.
const MAX_REPLY_CHARS: usize = 200;

/// The minimum length of a word that may be a secret, such as a code.
const MIN_SECRET_CHARS: usize = 6;

/// The reason why a mail could not be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The server cannot be reached, or does not speak SMTP.
    #[error("the mail server cannot be reached: {0}")]
    Connection(String),
    /// The server's certificate is not trusted, or the server does not offer TLS.
    #[error("the TLS connection to the mail server failed: {0}")]
    Tls(String),
    /// The server refused the user or password.
    #[error("the mail server refused the login: {0}")]
    Login(String),
    /// The server refused the mail temporarily.
    #[error("the mail server refused the mail for now: {0}")]
    Temporary(String),
    /// The server refused the mail permanently.
    #[error("the mail server refused the mail permanently: {0}")]
    Permanent(String),
    /// The mail cannot become a message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The server took longer than the timeout.
    #[error("the mail server did not respond in time")]
    TimedOut,
}

impl SendError {
    /// Classifies a failure that happened before the mail was sent. It is never caused by the mail.
    pub(crate) fn of_connection(error: &Error) -> Self {
        let text = to_line(&error.to_string());
        if error.is_tls() || has_tls_cause(error) {
            Self::Tls(text)
        } else if asks_for_login(error) {
            Self::Login(text)
        } else {
            Self::Connection(text)
        }
    }

    /// Classifies a failed login. The password is removed from the text.
    pub(crate) fn of_login(error: &Error, password: &str) -> Self {
        let text = to_line(&error.to_string());
        Self::Login(text.replace(password, ".."))
    }

    /// Classifies the refusal of a mail. Secrets of the mail are removed from the text.
    pub(crate) fn of_mail(error: &Error, mail: &Mail) -> Self {
        let text = without_secrets(&to_line(&error.to_string()), mail);
        if asks_for_login(error) {
            Self::Login(text)
        } else if error.is_permanent() {
            Self::Permanent(text)
        } else if error.is_transient() {
            Self::Temporary(text)
        } else {
            Self::Connection(text)
        }
    }

    /// Returns whether the operator of the installation must fix the configuration.
    pub(crate) const fn is_misconfiguration(&self) -> bool {
        matches!(self, Self::Tls(_) | Self::Login(_))
    }
}

/// The reason why the mail server cannot be used. Contains no password.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct CheckError(#[from] SendError);

impl CheckError {
    /// Returns what to do.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match &self.0 {
            SendError::Tls(_) => {
                "check the name of the host, the certificate, and the options tls and ca of the URL"
            }
            SendError::Login(_) => "check the user and the password in the URL",
            _ => "check the host, the port and the firewall",
        }
    }
}

impl From<SendError> for MailError {
    fn from(failure: SendError) -> Self {
        match failure {
            SendError::Permanent(_) | SendError::Message(_) => Self::Permanent(Cause::new(failure)),
            _ => Self::Transient(Cause::new(failure)),
        }
    }
}

/// Returns whether TLS is a cause of the error. With TLS from the start, the error itself is one of the connection.
fn has_tls_cause(error: &Error) -> bool {
    let mut next = error.source();
    while let Some(cause) = next {
        let inner = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if cause.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        next = cause.source();
    }
    false
}

fn asks_for_login(error: &Error) -> bool {
    let code = error.status().map(|code| code.to_string());
    code.is_some_and(|code| LOGIN_REPLIES.contains(&&*code))
}

/// Returns the text as one line of limited length.
fn to_line(text: &str) -> String {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(line).take(MAX_REPLY_CHARS).collect()
}

/// Removes secrets of the mail from a server's reply. Spam filters quote the mail, and its links and codes must not be
/// logged.
fn without_secrets(reply: &str, mail: &Mail) -> String {
    let of_mail = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let to = mail.to.as_str();
        let long = bare.len() >= MIN_SECRET_CHARS && !to.contains(bare);
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
    fn a_reply_is_one_line_without_secrets_of_the_mail() {
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
            without_secrets(&to_line(&reply), &mail),
            "554 5.7.1 <ada@example.org> spam: [..] [..] [..]  bye"
        );
        assert_eq!(to_line(&"x".repeat(1_000)).len(), MAX_REPLY_CHARS);
    }
}
