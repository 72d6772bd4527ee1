//! Names of hosts in the DNS.

use std::borrow::Cow;
use std::time::Duration;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{TextError, Timestamp, text, text_enum};

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

/// The label before a hostname in the name of its proof.
pub(super) const PROOF_LABEL: &str = "_core-verification";

/// The longest name that can be looked up.
pub(super) const MAX_NAME_LENGTH: usize = 253;

/// How long DNS records are looked up before a hostname is given up.
const VERIFICATION_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The shortest and the longest pause between two look-ups.
const SHORTEST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

text_enum! {
    /// The type of a record in the DNS.
    pub enum DnsRecordType {
        /// Another name for a name.
        Cname = "CNAME",
        /// Text.
        Txt = "TXT",
    }
}

/// A record that the holder of a hostname still has to create in the DNS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct MissingRecord {
    /// Its type. In place of a CNAME, addresses that equal those of its value will do, where a name can have no CNAME.
    #[serde(rename = "type")]
    pub record_type: DnsRecordType,
    /// Its name, without the dot of the root.
    pub name: String,
    /// What it must say.
    pub value: String,
}

/// Returns the text that proves a hostname. `random` makes it differ from all others.
pub(super) fn proof_text(random: &str) -> String {
    format!("core-verification={random}")
}

/// Returns the name of the proof, which is below the hostname. The proof of a wildcard is below its base.
pub(super) fn proof_name(hostname: &Hostname) -> String {
    format!("{PROOF_LABEL}.{}", hostname.base())
}

/// Returns the DNS record that proves a hostname.
pub(super) fn proof_record(hostname: &Hostname, proof: &str) -> MissingRecord {
    MissingRecord {
        record_type: DnsRecordType::Txt,
        name: proof_name(hostname),
        value: proof.to_owned(),
    }
}

/// Returns when DNS records are looked up again: after 30 s, and then as long as they were looked up so far and 30 s more,
/// which doubles every pause, up to an hour.
pub(super) fn next_look_up(since: Timestamp, now: Timestamp) -> Timestamp {
    now.plus((now.since(since) + SHORTEST_PAUSE).min(LONGEST_PAUSE))
}

/// Tells whether DNS records were missing for so long that the hostname is given up: for seven days.
pub(super) fn is_given_up(since: Option<Timestamp>, now: Timestamp) -> bool {
    since.is_some_and(|since| now.since(since) >= VERIFICATION_TIMEOUT)
}

/// Returns since when a proof has been missing, after another look-up.
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
