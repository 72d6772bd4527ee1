//! Reads the TOTP secret from the URL with which an authenticator app is set up.

use crate::iam::TotpSecret;

/// Returns the secret of an `otpauth:` URL; `None` if the URL contains no secret that the suite generated.
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
