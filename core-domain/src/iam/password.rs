//! What a password must be: 8 to 128 characters, and none that everybody tries first. No rules of composition.

use unicode_normalization::UnicodeNormalization;

use super::common_passwords::COMMON;
use crate::kernel::{Code, Error, Result, TextValue, arbitrary};

/// The fewest characters of a password.
const SHORTEST: usize = 8;

/// The most characters of a password.
const LONGEST: usize = 128;

/// The most characters of a text that is normalised at all: no letter of a keyboard is more than four characters.
const LONGEST_RAW: usize = 4 * LONGEST;

/// A password's hash (PHC string). It is stored and compared, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Takes a hash as a hasher made it.
    #[must_use]
    pub const fn new(phc: String) -> Self {
        Self(phc)
    }

    /// The PHC string, for the hasher.
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

/// The password as it is checked, hashed and compared: in the normal form NFKC of Unicode. Keyboards write the same letter
/// as one character or as two; a password must fit on every one of them.
///
/// # Errors
/// `PASSWORD_TOO_LONG` for a text that no password can be, before any work is done on it.
pub fn normal_password(password: &str) -> Result<String> {
    if password.chars().nth(LONGEST_RAW).is_some() {
        return Err(too_long());
    }
    Ok(password.nfkc().collect())
}

fn too_long() -> Error {
    Error::refused(Code::PasswordTooLong, "Password too long")
}

/// Checks a password somebody wants to have, in its normal form.
///
/// # Errors
/// `PASSWORD_TOO_SHORT`, `PASSWORD_TOO_LONG` or `PASSWORD_TOO_COMMON`.
pub fn check_password(password: &str) -> Result<()> {
    let length = password.chars().count();
    if length < SHORTEST {
        return Err(Error::refused(Code::PasswordTooShort, "Password too short"));
    }
    if length > LONGEST {
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
    fn length_is_counted_in_characters_not_bytes() {
        assert_eq!(code("ünïcödé"), Some(Code::PasswordTooShort));
        assert_eq!(code("ünïcödé!"), None);
        assert_eq!(code(&"aé".repeat(64)), None);
        assert_eq!(code(&"aé".repeat(65)), Some(Code::PasswordTooLong));
    }

    #[test]
    fn a_password_is_the_same_from_every_keyboard() {
        let normal = |password| normal_password(password).ok();
        assert_eq!(normal("cafe\u{301} noir"), normal("caf\u{e9} noir"));
        assert_eq!(normal("\u{ff50}assword").as_deref(), Some("password"));
        assert_eq!(normal("Correct horse").as_deref(), Some("Correct horse"));
    }

    #[test]
    fn what_everybody_tries_first_is_refused_in_any_case() {
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
