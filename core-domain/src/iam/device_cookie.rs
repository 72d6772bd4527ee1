//! The cookie of a browser that has signed in to accounts before, as OWASP describes it ("Device Cookies"). Failed sign-ins of
//! such a browser count for the browser alone, so that strangers who try passwords delay only strangers.
//!
//! The cookie gives no right: whoever holds it must still know the password.

use std::time::Duration;

use super::{CookieNames, CookieSigner};
use crate::kernel::{Email, Entropy, secret_token};

/// The lifetime of the cookie after a sign-in.
pub const DEVICE_COOKIE_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The most accounts that a cookie names. A sign-in to one more replaces the one that was used longest ago.
const MAX_ACCOUNTS: usize = 4;

/// The length of a nonce in characters, about 131 bits.
const NONCE_LENGTH: usize = 22;

/// What tells the signature of this cookie from those of others, which are made with the same secret.
const PURPOSE: &str = "device cookie";

/// What tells the digests of addresses from signatures.
const ADDRESS_PURPOSE: &str = "address in a device cookie";

/// The accounts that a browser has signed in to, the last one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCookie {
    accounts: Vec<KnownAccount>,
}

/// An account, and the random text that its failed sign-ins from this browser are counted under.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KnownAccount {
    /// The keyed digest of the e-mail address. Whoever reads the cookie learns no address from it.
    address_digest: String,
    nonce: String,
}

impl DeviceCookie {
    /// The cookie in a `Cookie` header; `None` without a validly signed one.
    #[must_use]
    pub fn in_cookies(signer: &CookieSigner, names: CookieNames, header: &str) -> Option<Self> {
        let signer = signer.for_purpose(PURPOSE);
        let text = signer.value_in_cookies(names.device(), header)?;
        Some(Self {
            accounts: parse(&text)?,
        })
    }

    /// The nonce of an account; `None` when the browser has not signed in to it.
    #[must_use]
    pub fn nonce(&self, signer: &CookieSigner, email: &Email) -> Option<&str> {
        let digest = digest_of(signer, email);
        let mut accounts = self.accounts.iter();
        let known = accounts.find(|known| known.address_digest == digest)?;
        Some(&known.nonce)
    }

    /// The value of the cookie after a sign-in to an account.
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
        let is_other = |known: &KnownAccount| known.address_digest != address_digest;
        self.accounts.retain(is_other);
        self.accounts.insert(
            0,
            KnownAccount {
                address_digest,
                nonce,
            },
        );
        self.accounts.truncate(MAX_ACCOUNTS);
        signer.for_purpose(PURPOSE).signed(&self.text())
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

fn parse(text: &str) -> Option<Vec<KnownAccount>> {
    let account = |pair: &str| {
        let (address_digest, nonce) = pair.split_once(':')?;
        Some(KnownAccount {
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
    fn a_cookie_knows_the_last_four_accounts_by_stable_nonces() {
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
    fn a_cookie_of_another_signature_or_purpose_knows_nobody() {
        let (signer, entropy) = (CookieSigner::new("secret"), SeededEntropy::new(1));
        let value = DeviceCookie::default().after_sign_in(&signer, &email("ada"), &entropy);
        let text = signer.for_purpose(PURPOSE).verified(&value).unwrap();
        let foreign = CookieSigner::new("another");
        let other_purpose = signer.signed(&text);
        for value in [&*text, "", &foreign.signed(&text), &other_purpose] {
            assert_eq!(read(&signer, value), DeviceCookie::default(), "{value}");
        }
        assert_eq!(signer.verified(&value), None);
    }
}
