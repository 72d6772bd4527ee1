//! Names of hosts in the DNS.

use std::borrow::Cow;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::kernel::{TextError, text};

/// What stands for any label.
const WILDCARD: &str = "*.";

/// The most characters of a name without the dot of the root.
const MAX_LENGTH: usize = 253;

/// The name in A-labels without the dot of the root. Two labels at least, behind a wildcard as well.
fn hostname(text: &str) -> Result<String, TextError> {
    let (wildcard, rest) = match text.strip_prefix(WILDCARD) {
        Some(rest) => (WILDCARD, rest),
        None => ("", text),
    };
    let name = to_a_labels(rest)?;
    let name = name.strip_suffix('.').unwrap_or(&name);
    let Some((_, last)) = name.rsplit_once('.') else {
        return Err(TextError::Malformed);
    };
    if is_number(last) {
        return Err(TextError::Malformed);
    }
    if wildcard.len() + name.len() > MAX_LENGTH {
        return Err(TextError::TooLong);
    }
    Ok(format!("{wildcard}{name}"))
}

/// UTS 46, non-transitional, letters, digits and hyphens alone (STD 3). Names in use have hyphens in the third and fourth
/// place of labels, so these pass.
fn to_a_labels(name: &str) -> Result<Cow<'_, str>, TextError> {
    let (deny, length) = (AsciiDenyList::STD3, DnsLength::VerifyAllowRootDot);
    let uts46 = Uts46::new();
    let ascii = uts46.to_ascii(name.as_bytes(), deny, Hyphens::CheckFirstLast, length);
    ascii.map_err(|_| TextError::Malformed)
}

/// Whether a last label makes the name an IPv4 address, in whatever notation.
fn is_number(label: &str) -> bool {
    let (digits, radix) = match label.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (label, 10),
    };
    digits.chars().all(|c| c.is_digit(radix))
}

text! {
    /// The name of a host: at least two labels, folded to lower case and A-labels, without the dot of the root; at most 253
    /// characters, 63 a label. The first label may be `*`, with at least two behind it. Never an IP address.
    Hostname, hostname, { "type": "string", "minLength": 1, "maxLength": 254, "format": "idn-hostname", "examples": ["shop.example.org"] }
}

impl Hostname {
    /// Whether it stands for every name with one more label.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.as_str().starts_with(WILDCARD)
    }

    /// Whether it is a zone's name or below it; a wildcard is below the name behind it.
    #[must_use]
    pub fn is_in(&self, zone: &str) -> bool {
        let above = self.base().strip_suffix(zone);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }

    /// The name without its wildcard.
    #[must_use]
    pub fn base(&self) -> &str {
        let name = self.as_str();
        name.strip_prefix(WILDCARD).unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<String, TextError> {
        Hostname::parse(text).map(|name| name.to_string())
    }

    #[test]
    fn a_name_is_kept_in_one_spelling() {
        for (text, name) in [
            ("Shop.Example.ORG.", "shop.example.org"),
            ("*.Example.org", "*.example.org"),
            ("münchen.example", "xn--mnchen-3ya.example"),
            ("XN--mnchen-3ya.example", "xn--mnchen-3ya.example"),
            ("straße.example", "xn--strae-oqa.example"),
            ("shop。example。", "shop.example"),
            ("r3---x.example.org", "r3---x.example.org"),
            ("1.2.3.example", "1.2.3.example"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(name), "{text}");
        }
    }

    #[test]
    fn what_is_no_name_of_a_host_is_refused() {
        let long = format!("{}.example", "a".repeat(64));
        for text in [
            "",
            ".",
            "*",
            "*.",
            "example",
            "*.example",
            "a.*.example",
            "*a.example.org",
            "**.example.org",
            "*.*.example.org",
            "a..example",
            ".example.org",
            "a.example..",
            "-a.example",
            "a-.example",
            "a_b.example",
            "a b.example",
            " a.example",
            "a.example/",
            "a:80.example",
            "127.0.0.1",
            "127.0.0.1.",
            "*.0.0.1",
            "127.1",
            "1.0x7f",
            "1.0x",
            "[::1]",
            "::1",
            "a.1",
            "xn--a.example",
            "a\u{200d}b.example",
            "a\0.example",
            long.as_str(),
        ] {
            assert_eq!(parsed(text), Err(TextError::Malformed), "{text:?}");
        }
    }

    #[test]
    fn a_name_has_253_characters_at_the_most_with_its_wildcard() {
        let label = "a".repeat(61);
        let name = |first: usize| format!("{}.{label}.{label}.{label}.io", "b".repeat(first));
        assert_eq!(parsed(&name(61)).map(|name| name.len()), Ok(250));
        let longest = format!("{}.{}.io", "a".repeat(63), name(61).replace(".io", ""));
        assert!(parsed(&longest).is_err());
        assert!(parsed(&name(63)).is_ok() && parsed(&format!("*.{}", name(62))).is_ok());
        let with_wildcard = parsed(&format!("*.{}", name(63)));
        assert_eq!(with_wildcard, Err(TextError::TooLong));
    }

    proptest! {
        #[test]
        fn whatever_is_parsed_parses_to_itself(text in "\\PC{0,40}|[*.a-zA-Z0-9äß。_-]{0,40}") {
            if let Ok(name) = parsed(&text) {
                prop_assert_eq!(parsed(&name), Ok(name.clone()));
                prop_assert!(name.len() <= 253 && name.is_ascii());
            }
        }

        #[test]
        fn all_spellings_of_a_name_are_one_name(name in "(\\*\\.)?[a-zäöüéñж]{1,12}\\.[a-zäöü]{1,12}\\.example") {
            let plain = Hostname::parse(&name).unwrap();
            let upper = Hostname::parse(&name.to_uppercase()).unwrap();
            let rooted = Hostname::parse(&format!("{name}.")).unwrap();
            prop_assert!(plain == upper && plain == rooted);
            prop_assert_eq!(plain.is_wildcard(), name.starts_with('*'));
        }
    }
}
