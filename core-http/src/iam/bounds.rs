//! Upper bounds for texts in requests. The exact limits are checked later and have error codes of their own, so the
//! schemas contain only these larger bounds.

/// Maximum length of a password field in a request, in characters. A password has at most 128 characters. A longer text
/// is rejected with `PASSWORD_TOO_LONG` at sign-up and as a wrong password at sign-in; beyond this bound the request is
/// malformed.
pub(super) const MAX_PASSWORD_TEXT: usize = 128 * 1024;

/// Maximum length of a text that is parsed as an email address, in characters. An address has at most 254.
pub(super) const MAX_EMAIL_TEXT: usize = 1024;

/// Maximum length of a URL or path to which a browser is redirected, in characters.
pub(super) const MAX_TARGET: usize = 2048;

/// Maximum size of an authenticator response, in bytes of JSON. An attestation with its certificates has about 10 KiB.
pub(super) const MAX_PASSKEY_RESPONSE: usize = 64 * 1024;

/// Maximum size of the permissions in one `has-permission` request, in bytes of JSON.
pub(super) const MAX_PERMISSION_QUERY: usize = 16 * 1024;
