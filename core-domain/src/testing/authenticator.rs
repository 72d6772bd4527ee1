//! What an authenticator reads from the address that a set-up of a second factor shows.

use crate::iam::TotpSecret;

/// The secret in an `otpauth:` address; `None` when there is none in it that we made.
#[must_use]
pub fn totp_secret_of(uri: &str) -> Option<TotpSecret> {
    let (_, rest) = uri.split_once("secret=")?;
    let (mut plain, mut bits, mut count) = (Vec::new(), 0_u32, 0_u32);
    for letter in rest.split('&').next()?.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        bits = (bits << 5) | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            plain.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    String::from_utf8(plain).ok().map(TotpSecret::new)
}
