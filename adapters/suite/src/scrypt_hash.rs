//! Password hashes as better-auth stores them: scrypt, `<salt>:<key>` in hexadecimal.

use scrypt::Params;
use subtle::ConstantTimeEq;

/// The hash does not state its parameters; these are the ones that better-auth uses.
const LOG_N: u8 = 14;
const BLOCK_SIZE: u32 = 16;
const LANES: u32 = 1;

const SALT_DIGITS: usize = 32;
const KEY_LENGTH: usize = 64;

/// A hash made by better-auth.
pub(crate) struct ScryptHash {
    /// The salt in hexadecimal. better-auth hashes with this text, not with the bytes that it encodes.
    salt: String,
    key: [u8; KEY_LENGTH],
}

/// The hash could not be computed.
#[derive(Debug, thiserror::Error)]
#[error("scrypt failed: {0}")]
pub(crate) struct ScryptError(String);

impl ScryptHash {
    /// Parses a stored hash; `None` if it does not have better-auth's format.
    pub(crate) fn parse(stored: &str) -> Option<Self> {
        let (salt, digits) = stored.split_once(':')?;
        let hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if salt.len() != SALT_DIGITS || digits.len() != 2 * KEY_LENGTH {
            return None;
        }
        if !hexadecimal(salt) || !hexadecimal(digits) {
            return None;
        }
        let mut key = [0; KEY_LENGTH];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self {
            salt: salt.to_owned(),
            key,
        })
    }

    /// Returns whether the hash belongs to the password, compared in constant time. Takes 32 MiB of memory.
    ///
    /// # Errors
    /// [`ScryptError`] if the parameters are invalid.
    pub(crate) fn verify(&self, password: &str) -> Result<bool, ScryptError> {
        let failed = |error: &dyn std::fmt::Display| ScryptError(error.to_string());
        let params = Params::new(LOG_N, BLOCK_SIZE, LANES).map_err(|error| failed(&error))?;
        let mut key = [0; KEY_LENGTH];
        scrypt::scrypt(password.as_bytes(), self.salt.as_bytes(), &params, &mut key)
            .map_err(|error| failed(&error))?;
        Ok(key.ct_eq(&self.key).into())
    }
}
