//! Sends the suite's mail through an SMTP server. Supports implicit TLS, STARTTLS and authentication, and reuses
//! connections.
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
