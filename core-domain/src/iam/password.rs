//! Password rules: 8 to 128 characters, and none of the most common passwords. There are no composition rules.

use unicode_normalization::UnicodeNormalization;

use super::common_passwords::COMMON;
use crate::kernel::{Code, Error, Result, TextValue, arbitrary};

/// Minimum length of a password, in characters.
const MIN_PASSWORD_LENGTH: usize = 8;

/// Maximum length of a password, in characters.
const MAX_PASSWORD_LENGTH: usize = 128;

/// Maximum length of a text that is normalised, in characters. A letter of a keyboard has at most four characters
/// before NFKC.
const MAX_RAW_LENGTH: usize = 4 * MAX_PASSWORD_LENGTH;

/// The hash of a password, as a PHC string. It is never part of a response.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Wraps a hash that a password hasher returned.
    #[must_use]
    pub const fn new(phc: String) -> Self {
        Self(phc)
    }

    /// Returns the PHC string, for the password hasher.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

impl TextValue for PasswordHash {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

arbitrary!(PasswordHash as "\\$argon2id\\$[a-zA-Z0-9+/$=,]{20,60}");

/// Returns the password in the Unicode normal form NFKC, which is checked, hashed and compared. Keyboards may produce
/// the same letter as one character or as several. The normal form makes the password independent of the keyboard.
///
/// # Errors
/// `PASSWORD_TOO_LONG` if the text is longer than any password before normalisation.
pub fn normalize_password(password: &str) -> Result<String> {
    if password.chars().nth(MAX_RAW_LENGTH).is_some() {
        return Err(too_long());
    }
    Ok(password.nfkc().collect())
}

fn too_long() -> Error {
    Error::refused(Code::PasswordTooLong, "Password too long")
}

/// Checks that a new password, in its normal form, follows the rules.
///
/// # Errors
/// - `PASSWORD_TOO_SHORT` if it has less than 8 characters.
/// - `PASSWORD_TOO_LONG` if it has more than 128 characters.
/// - `PASSWORD_TOO_COMMON` if it is a common password or repeats a single character.
pub fn check_password(password: &str) -> Result<()> {
    let length = password.chars().count();
    if length < MIN_PASSWORD_LENGTH {
        return Err(Error::refused(Code::PasswordTooShort, "Password too short"));
    }
    if length > MAX_PASSWORD_LENGTH {
        return Err(too_long());
    }
    let folded = password.to_lowercase();
    if COMMON.contains(&folded.as_str()) || is_one_character(&folded) {
        return Err(Error::refused(
            Code::PasswordTooCommon,
            "Password is too common",
        ));
    }
    Ok(())
}

fn is_one_character(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next();
    characters.all(|c| Some(c) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(password: &str) -> Option<Code> {
        check_password(password).err().map(|error| error.code())
    }

    #[test]
    fn length_is_counted_in_characters_and_not_in_bytes() {
        assert_eq!(code("ünïcödé"), Some(Code::PasswordTooShort));
        assert_eq!(code("ünïcödé!"), None);
        assert_eq!(code(&"aé".repeat(64)), None);
        assert_eq!(code(&"aé".repeat(65)), Some(Code::PasswordTooLong));
    }

    #[test]
    fn normal_form_is_independent_of_the_keyboard() {
        let normal = |password| normalize_password(password).ok();
        assert_eq!(normal("cafe\u{301} noir"), normal("caf\u{e9} noir"));
        assert_eq!(normal("\u{ff50}assword").as_deref(), Some("password"));
        assert_eq!(normal("Correct horse").as_deref(), Some("Correct horse"));
    }

    #[test]
    fn common_passwords_are_refused_in_any_letter_case() {
        for common in [
            "password",
            "PassWord1",
            "12345678",
            "qwertyuiop",
            "zzzzzzzzzz",
        ] {
            assert_eq!(code(common), Some(Code::PasswordTooCommon), "{common}");
        }
        assert_eq!(code("correct horse battery"), None);
    }
}
