//! The keyring of the system: Secret Service on Linux, Keychain on macOS, Credential Manager on Windows.

use ::keyring::v1::Entry;

/// The name of the program in the keyring.
const SERVICE: &str = "core-cli";

/// Returns the text of an account; `None` if there is none or the machine has no keyring.
pub(super) fn read(account: &str) -> Option<String> {
    Entry::new(SERVICE, account).ok()?.get_password().ok()
}

/// Stores the text of an account. Returns whether the machine has a keyring that accepted it.
pub(super) fn write(account: &str, text: &str) -> bool {
    let stored = Entry::new(SERVICE, account).and_then(|entry| entry.set_password(text));
    stored.is_ok()
}

/// Deletes the text of an account. Returns whether there was one.
pub(super) fn delete(account: &str) -> bool {
    let deleted = Entry::new(SERVICE, account).and_then(|entry| entry.delete_credential());
    // A missing keyring has no text of the account.
    deleted.is_ok()
}
