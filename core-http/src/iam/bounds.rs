//! Bounds of texts that have codes of their own for what is wrong with them, so that their schemas say little.

/// Maximum length of a password text in a request, in characters. Passwords have at most 128 characters. Longer texts are
/// `PASSWORD_TOO_LONG` at a sign-up and a wrong password at a sign-in; texts beyond this bound are malformed requests.
pub(super) const MAX_PASSWORD_TEXT: usize = 128 * 1024;

/// The largest text that is read as an email address, in characters. Addresses have at most 254.
pub(super) const MAX_EMAIL_TEXT: usize = 1024;

/// The largest address that a browser is sent to, in characters.
pub(super) const MAX_TARGET: usize = 2048;

/// The largest answer of a passkey, in bytes of JSON. An attestation with its certificates has some 10 KiB.
pub(super) const MAX_PASSKEY_RESPONSE: usize = 64 * 1024;

/// The largest list of permissions that a client can ask about at once, in bytes of JSON.
pub(super) const MAX_PERMISSION_QUERY: usize = 16 * 1024;
