//! Composes the suite's mail and sends it through an SMTP server. Supports implicit TLS, STARTTLS and authentication,
//! and reuses connections.
//!
//! ```
//! # #[cfg(feature = "transport")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use core_smtp::{SmtpMailer, SmtpUrl};
//!
//! let url: SmtpUrl = "smtp://core:secret@mail.example.org:587".parse()?;
//! assert!(!format!("{url:?}").contains("secret"));
//! let mailer = SmtpMailer::new(url, "Core <no-reply@example.org>".parse()?)?;
//! # drop(mailer);
//! # Ok(()) }
//! # #[cfg(not(feature = "transport"))]
//! # fn main() {}
//! ```

#[cfg(feature = "transport")]
mod connections;
#[cfg(feature = "transport")]
mod failure;
#[cfg(feature = "transport")]
mod mailer;
mod message;
#[cfg(feature = "transport")]
mod url;

#[cfg(feature = "transport")]
pub use failure::CheckError;
#[cfg(feature = "transport")]
pub use mailer::{SmtpError, SmtpMailer};
pub use message::{MessageError, mime_message};
#[cfg(feature = "transport")]
pub use url::{Security, SmtpUrl, UrlError};
