//! Registers and verifies the suite's passkeys (WebAuthn) for one relying party: the host of IAM's base URL.
//!
//! ```
//! use core_webauthn::Webauthn;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let passkeys = Webauthn::new("https://iam.example.org", &[])?;
//! // Browsers do not support passkeys for IP addresses.
//! assert!(Webauthn::new("http://127.0.0.1:8081", &[]).is_err());
//! # Ok(()) }
//! ```

mod passkeys;
#[cfg(feature = "testing")]
pub mod testing;

pub use passkeys::{Webauthn, WebauthnError};
