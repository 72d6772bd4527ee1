//! Hostnames of DNS records and custom domains, and the TXT record that proves the ownership of a hostname.

use std::borrow::Cow;
use std::time::Duration;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{TextError, Timestamp, text, text_enum};

/// The prefix of a wildcard hostname. It matches any single label.
const WILDCARD: &str = "*.";

/// Maximum length of a hostname in characters, without the trailing dot.
const MAX_LENGTH: usize = 253;

/// Normalizes a hostname to lower case and A-labels, without the trailing dot. The name has at least two labels, not
/// counting the wildcard.
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

/// Converts a name to A-labels by UTS 46, non-transitional. Only letters, digits and hyphens are allowed (STD 3).
/// Hyphens in the third and fourth position of a label are allowed, because names in use have them.
fn to_a_labels(name: &str) -> Result<Cow<'_, str>, TextError> {
    let (deny, length) = (AsciiDenyList::STD3, DnsLength::VerifyAllowRootDot);
    let uts46 = Uts46::new();
    let ascii = uts46.to_ascii(name.as_bytes(), deny, Hyphens::CheckFirstLast, length);
    ascii.map_err(|_| TextError::Malformed)
}

/// Returns whether the last label makes the name an IPv4 address, in decimal or hexadecimal notation.
fn is_number(label: &str) -> bool {
    let (digits, radix) = match label.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (label, 10),
    };
    digits.chars().all(|c| c.is_digit(radix))
}

text! {
    /// The name of a host, in lower case and A-labels, without the trailing dot. It has at least two labels and at most
    /// 253 characters, 63 in a label. The first label may be `*`, followed by at least two labels. IP addresses are
    /// refused.
    Hostname, hostname, { "type": "string", "minLength": 1, "maxLength": 254, "format": "idn-hostname", "examples": ["shop.example.org"] }
}

impl Hostname {
    /// Returns whether the first label is `*`. A wildcard matches every name with exactly one label in its place.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.as_str().starts_with(WILDCARD)
    }

    /// Returns whether the hostname is the zone's name or below it. A wildcard is compared by its base name.
    #[must_use]
    pub fn is_in(&self, zone: &str) -> bool {
        let above = self.base().strip_suffix(zone);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }

    /// Returns the name without its wildcard label.
    #[must_use]
    pub fn base(&self) -> &str {
        let name = self.as_str();
        name.strip_prefix(WILDCARD).unwrap_or(name)
    }
}

/// The label before a hostname in the name of its proof record.
pub(super) const PROOF_LABEL: &str = "_core-verification";

/// Maximum length in characters of a name that can be looked up in the DNS.
pub(super) const MAX_NAME_LENGTH: usize = 253;

/// The time after the first look-up at which the verification fails if DNS records are still missing.
const VERIFICATION_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Minimum and maximum pause between two look-ups.
const MIN_PAUSE: Duration = Duration::from_secs(30);
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

text_enum! {
    /// The type of a required DNS record.
    pub enum DnsRecordType {
        /// An alias for another name.
        Cname = "CNAME",
        /// A text record that contains a proof.
        Txt = "TXT",
    }
}

/// A DNS record that the owner of a hostname still has to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct MissingRecord {
    /// The type of the record. Where a name cannot have a CNAME, address records with the addresses of `value` are
    /// accepted instead.
    #[serde(rename = "type")]
    pub record_type: DnsRecordType,
    /// The name of the record, without the trailing dot.
    pub name: String,
    /// The required content: the target name of a CNAME, or the text of a TXT record.
    pub value: String,
}

/// Returns the text that proves the ownership of a hostname. `random` makes it unique.
pub(super) fn proof_text(random: &str) -> String {
    format!("core-verification={random}")
}

/// Returns the name of the proof record, one label below the hostname. For a wildcard, it is below the base name.
pub(super) fn proof_name(hostname: &Hostname) -> String {
    format!("{PROOF_LABEL}.{}", hostname.base())
}

/// Returns the TXT record that proves the ownership of a hostname.
pub(super) fn proof_record(hostname: &Hostname, proof: &str) -> MissingRecord {
    MissingRecord {
        record_type: DnsRecordType::Txt,
        name: proof_name(hostname),
        value: proof.to_owned(),
    }
}

/// Returns the time of the next look-up. `since` is the time of the first look-up. The pause is the time since then
/// plus 30 seconds, at most one hour. Pauses therefore double.
pub(super) fn next_look_up(since: Timestamp, now: Timestamp) -> Timestamp {
    now.plus((now.since(since) + MIN_PAUSE).min(MAX_PAUSE))
}

/// Returns whether DNS records have been missing for seven days, so that the verification fails. `since` is the time of
/// the first look-up.
pub(super) fn has_timed_out(since: Option<Timestamp>, now: Timestamp) -> bool {
    since.is_some_and(|since| now.since(since) >= VERIFICATION_TIMEOUT)
}

/// Returns the time since which a proof has been missing, updated after another look-up. `None` if the look-up found
/// it.
pub(super) fn missing_since(
    before: Option<Timestamp>,
    is_there: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    (!is_there).then(|| before.unwrap_or(now))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normalize(text: &str) -> Result<String, TextError> {
        Hostname::parse(text).map(|name| name.to_string())
    }

    #[test]
    fn hostnames_are_normalized_to_lower_case_a_labels() {
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
            assert_eq!(normalize(text).as_deref(), Ok(name), "{text}");
        }
    }

    #[test]
    fn invalid_hostnames_are_refused() {
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
            assert_eq!(normalize(text), Err(TextError::Malformed), "{text:?}");
        }
    }

    #[test]
    fn a_hostname_has_at_most_253_characters_with_its_wildcard() {
        let label = "a".repeat(61);
        let name = |first: usize| format!("{}.{label}.{label}.{label}.io", "b".repeat(first));
        assert_eq!(normalize(&name(61)).map(|name| name.len()), Ok(250));
        let longest = format!("{}.{}.io", "a".repeat(63), name(61).replace(".io", ""));
        assert!(normalize(&longest).is_err());
        assert!(normalize(&name(63)).is_ok() && normalize(&format!("*.{}", name(62))).is_ok());
        let with_wildcard = normalize(&format!("*.{}", name(63)));
        assert_eq!(with_wildcard, Err(TextError::TooLong));
    }

    proptest! {
        #[test]
        fn parsing_a_parsed_hostname_returns_it_unchanged(text in "\\PC{0,40}|[*.a-zA-Z0-9äß。_-]{0,40}") {
            if let Ok(name) = normalize(&text) {
                prop_assert_eq!(normalize(&name), Ok(name.clone()));
                prop_assert!(name.len() <= 253 && name.is_ascii());
            }
        }

        #[test]
        fn all_spellings_of_a_hostname_parse_to_the_same_value(name in "(\\*\\.)?[a-zäöüéñж]{1,12}\\.[a-zäöü]{1,12}\\.example") {
            let plain = Hostname::parse(&name).unwrap();
            let upper = Hostname::parse(&name.to_uppercase()).unwrap();
            let rooted = Hostname::parse(&format!("{name}.")).unwrap();
            prop_assert!(plain == upper && plain == rooted);
            prop_assert_eq!(plain.is_wildcard(), name.starts_with('*'));
        }
    }
}
