//! Sends the suite's mail by an SMTP server: with TLS from the first byte or after STARTTLS, with authentication, over
//! connections that are used again.
//!
//! ```
//! use core_smtp::{SmtpMailer, SmtpUrl};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let url: SmtpUrl = "smtp://core:secret@mail.example.org:587".parse()?;
//! assert!(!format!("{url:?}").contains("secret"));
//! let mailer = SmtpMailer::new(url, "Core <no-reply@example.org>".parse()?)?;
//! # drop(mailer);
//! # Ok(()) }
//! ```

mod connections;
mod failure;
mod mailer;
mod url;

pub use mailer::{SmtpError, SmtpMailer};
pub use url::{Security, SmtpUrl, UrlError};
