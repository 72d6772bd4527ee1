//! What a password must be: 8 to 128 characters, and none that everybody tries first. No rules of composition.

use unicode_normalization::UnicodeNormalization;

use super::common_passwords::COMMON;
use crate::kernel::{Code, Error, Result};

/// The password as it is checked, hashed and compared: in the normal form NFKC of Unicode. Keyboards write the same letter
/// as one character or as two; a password must fit on every one of them.
#[must_use]
pub fn normal_password(password: &str) -> String {
    password.nfkc().collect()
}

/// Checks a password somebody wants to have, in its normal form.
///
/// # Errors
/// `PASSWORD_TOO_SHORT`, `PASSWORD_TOO_LONG` or `PASSWORD_TOO_COMMON`.
pub fn check_password(password: &str) -> Result<()> {
    let length = password.chars().count();
    if length < 8 {
        return Err(Error::refused(Code::PasswordTooShort, "Password too short"));
    }
    if length > 128 {
        return Err(Error::refused(Code::PasswordTooLong, "Password too long"));
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
        assert_eq!(
            normal_password("cafe\u{301} noir"),
            normal_password("caf\u{e9} noir")
        );
        assert_eq!(normal_password("\u{ff50}assword"), "password");
        assert_eq!(normal_password("Correct horse"), "Correct horse");
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
