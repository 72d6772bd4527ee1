//! The cookie of a browser that has signed in to accounts before ("Device Cookies" of OWASP). Failed sign-ins from such
//! a browser count only for this browser. Thus attackers who try passwords cannot delay the owner of the account.
//!
//! The cookie grants no access: the holder must still know the password.

use std::time::Duration;

use super::{CookieNames, CookieSigner};
use crate::kernel::{Email, Entropy, secret_token};

/// Lifetime of the cookie after a sign-in: 365 days.
pub const DEVICE_COOKIE_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Maximum number of accounts in one cookie. A sign-in to one more replaces the least recently used account.
const MAX_ACCOUNTS: usize = 4;

/// Length of a nonce in characters; about 131 bits.
const NONCE_LENGTH: usize = 22;

/// Separates the signature of this cookie from other signatures with the same secret.
const PURPOSE: &str = "device cookie";

/// Separates the digests of email addresses from signatures with the same secret.
const ADDRESS_PURPOSE: &str = "address in a device cookie";

/// The accounts that a browser has signed in to, most recent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCookie {
    accounts: Vec<DeviceAccount>,
}

/// An account, with the random text under which its failed sign-ins from this browser are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DeviceAccount {
    /// The keyed digest of the email address, so that the cookie does not reveal the address.
    address_digest: String,
    nonce: String,
}

impl DeviceCookie {
    /// Returns the cookie from a `Cookie` header; `None` without a cookie with a valid signature.
    #[must_use]
    pub fn in_cookies(signer: &CookieSigner, names: CookieNames, header: &str) -> Option<Self> {
        let signer = signer.for_purpose(PURPOSE);
        let text = signer.value_in_cookies(names.device(), header)?;
        Some(Self {
            accounts: parse(&text)?,
        })
    }

    /// Returns the nonce of an account; `None` if the browser has not signed in to it.
    #[must_use]
    pub fn nonce(&self, signer: &CookieSigner, email: &Email) -> Option<&str> {
        let digest = digest_of(signer, email);
        let mut accounts = self.accounts.iter();
        let known = accounts.find(|known| known.address_digest == digest)?;
        Some(&known.nonce)
    }

    /// Returns the new value of the cookie after a sign-in to an account.
    #[must_use]
    pub fn after_sign_in(
        mut self,
        signer: &CookieSigner,
        email: &Email,
        entropy: &dyn Entropy,
    ) -> String {
        let address_digest = digest_of(signer, email);
        let known = self.nonce(signer, email).map(str::to_owned);
        let nonce = known.unwrap_or_else(|| secret_token(entropy, NONCE_LENGTH));
        let is_other = |known: &DeviceAccount| known.address_digest != address_digest;
        self.accounts.retain(is_other);
        self.accounts.insert(
            0,
            DeviceAccount {
                address_digest,
                nonce,
            },
        );
        self.accounts.truncate(MAX_ACCOUNTS);
        signer.for_purpose(PURPOSE).sign(&self.text())
    }

    fn text(&self) -> String {
        let pairs = self
            .accounts
            .iter()
            .map(|known| format!("{}:{}", known.address_digest, known.nonce));
        pairs.collect::<Vec<_>>().join(",")
    }
}

fn digest_of(signer: &CookieSigner, email: &Email) -> String {
    signer.for_purpose(ADDRESS_PURPOSE).digest(email.as_str())
}

fn parse(text: &str) -> Option<Vec<DeviceAccount>> {
    let account = |pair: &str| {
        let (address_digest, nonce) = pair.split_once(':')?;
        Some(DeviceAccount {
            address_digest: address_digest.to_owned(),
            nonce: nonce.to_owned(),
        })
    };
    text.split(',').take(MAX_ACCOUNTS).map(account).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

    fn email(name: &str) -> Email {
        Email::parse(&format!("{name}@example.org")).unwrap()
    }

    fn read(signer: &CookieSigner, value: &str) -> DeviceCookie {
        let names = CookieNames::for_url("http://iam.example.org");
        let header = names.set(names.device(), value, None);
        DeviceCookie::in_cookies(signer, names, &header).unwrap_or_default()
    }

    #[test]
    fn cookie_keeps_the_nonces_of_the_last_four_accounts() {
        let (signer, entropy) = (CookieSigner::new("secret"), SeededEntropy::new(1));
        let mut value = String::new();
        for name in ["ada", "bob", "cyd", "dan", "ada", "eve"] {
            let cookie = read(&signer, &value);
            let before = cookie.nonce(&signer, &email(name)).map(str::to_owned);
            value = cookie.after_sign_in(&signer, &email(name), &entropy);
            let cookie = read(&signer, &value);
            let nonce = cookie.nonce(&signer, &email(name)).unwrap();
            assert!(before.is_none_or(|before| before == nonce));
        }
        let cookie = read(&signer, &value);
        let known = ["ada", "bob", "cyd", "dan", "eve"];
        let known = known.map(|name| cookie.nonce(&signer, &email(name)).is_some());
        assert_eq!(known, [true, false, true, true, true]);
        assert!(!value.contains("ada"));
    }

    #[test]
    fn cookie_with_a_wrong_signature_or_purpose_is_ignored() {
        let (signer, entropy) = (CookieSigner::new("secret"), SeededEntropy::new(1));
        let value = DeviceCookie::default().after_sign_in(&signer, &email("ada"), &entropy);
        let text = signer.for_purpose(PURPOSE).verify(&value).unwrap();
        let foreign = CookieSigner::new("another");
        let other_purpose = signer.sign(&text);
        for value in [&*text, "", &foreign.sign(&text), &other_purpose] {
            assert_eq!(read(&signer, value), DeviceCookie::default(), "{value}");
        }
        assert_eq!(signer.verify(&value), None);
    }
}
