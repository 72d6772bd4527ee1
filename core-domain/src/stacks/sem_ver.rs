//! Versions that match the interface's pattern `^\d+\.\d+\.\d+(-[a-zA-Z0-9.]+)?$`, with SemVer 2 precedence.

use std::cmp::Ordering;

use crate::kernel::{TextError, TextValue, arbitrary};

/// Maximum length of a version in characters.
const MAX_LENGTH: usize = 64;

/// A version. It keeps its spelling, but is compared by SemVer 2 precedence: `01.0.0` and `1.0.0` are equal.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(into = "String")]
pub struct SemVer {
    text: String,
    numbers: [String; 3],
    pre_release: Vec<Identifier>,
}

/// An identifier of a pre-release. Numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(Digits),
    Word(String),
}

/// A number of any size, without leading zeros. A number with fewer digits is smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digits(String);

impl Ord for Digits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Digits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn digits(text: &str) -> Option<String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let trimmed = text.trim_start_matches('0');
    Some(if trimmed.is_empty() {
        "0".to_owned()
    } else {
        trimmed.to_owned()
    })
}

fn identifier(text: &str) -> Identifier {
    digits(text).map_or_else(
        || Identifier::Word(text.to_owned()),
        |number| Identifier::Number(Digits(number)),
    )
}

impl SemVer {
    /// Parses a version.
    ///
    /// # Errors
    /// [`TextError`] if the text is too long or does not match the pattern. Build metadata does not match it.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.len() > MAX_LENGTH {
            return Err(TextError::TooLong);
        }
        let (core, pre_release) = match text.split_once('-') {
            Some((core, pre_release)) => (core, Some(pre_release)),
            None => (text, None),
        };
        let mut parts = core.split('.').map(digits);
        let (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TextError::Malformed);
        };
        let pre_release = match pre_release {
            None => Vec::new(),
            Some(rest)
                if !rest.is_empty()
                    && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.') =>
            {
                rest.split('.').map(identifier).collect()
            }
            Some(_) => return Err(TextError::Malformed),
        };
        Ok(Self {
            text: text.to_owned(),
            numbers: [major, minor, patch],
            pre_release,
        })
    }

    /// Returns the version in its original spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the version is a pre-release.
    #[must_use]
    pub fn is_pre_release(&self) -> bool {
        !self.pre_release.is_empty()
    }

    /// Returns a text whose byte order is the order of versions by precedence. Equal versions have equal texts.
    ///
    /// Numbers are prefixed with their number of digits. A release ends with `~`, which sorts after every pre-release.
    #[must_use]
    pub fn precedence_key(&self) -> String {
        let number = |digits: &str| format!("{:02}{digits}", digits.len());
        let mut key: String = self
            .numbers
            .iter()
            .map(|n| number(n))
            .collect::<Vec<_>>()
            .join(".");
        if self.pre_release.is_empty() {
            key.push('~');
            return key;
        }
        for identifier in &self.pre_release {
            // '!' sorts before every letter and digit, so that a shorter list of equal identifiers comes first.
            key.push('!');
            match identifier {
                Identifier::Number(digits) => key.push_str(&format!("0{}", number(&digits.0))),
                Identifier::Word(word) => key.push_str(&format!("1{word}")),
            }
        }
        key
    }
}

impl PartialEq for SemVer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SemVer {}

impl PartialOrd for SemVer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SemVer {
    fn cmp(&self, other: &Self) -> Ordering {
        let number = |n: &String| Digits(n.clone());
        let ours = self.numbers.iter().map(number);
        ours.cmp(other.numbers.iter().map(number)).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                _ => self.pre_release.cmp(&other.pre_release),
            }
        })
    }
}

impl From<SemVer> for String {
    fn from(version: SemVer) -> Self {
        version.text
    }
}

impl TextValue for SemVer {
    fn as_text(&self) -> &str {
        &self.text
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl std::fmt::Display for SemVer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> serde::Deserialize<'de> for SemVer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for SemVer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SemVer".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^\\d+\\.\\d+\\.\\d+(-[a-zA-Z0-9.]+)?$",
            "maxLength": MAX_LENGTH,
            "examples": ["1.2.0"],
        })
    }
}

arbitrary!(SemVer);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> SemVer {
        SemVer::parse(text).unwrap()
    }

    #[test]
    fn the_examples_of_the_semver_standard_are_in_order() {
        let in_order = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "2.0.0",
            "99999999999999999999999.0.0",
        ];
        for pair in in_order.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn leading_zeros_make_no_difference() {
        assert_eq!(version("01.0.0"), version("1.0.0"));
        assert_eq!(version("01.0.0").as_str(), "01.0.0");
    }

    #[test]
    fn texts_that_do_not_match_the_pattern_are_refused() {
        for bad in [
            "",
            "1",
            "1.0",
            "1.0.0.0",
            "1.0.0-",
            "1.0.0+build",
            "1.0.0-a+b",
            "v1.0.0",
            "1.0.0-a_b",
            "-1.0.0",
            "1..0",
        ] {
            assert_eq!(
                SemVer::parse(bad).map(String::from),
                Err(TextError::Malformed),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn precedence_keys_sort_as_the_versions_do(
            a in r"[0-9]{1,4}\.[0-9]{1,3}\.[0-9]{1,2}(-[a-zA-Z0-9]{1,3}(\.[a-zA-Z0-9]{1,3}){0,3})?",
            b in r"[0-9]{1,4}\.[0-9]{1,3}\.[0-9]{1,2}(-[a-zA-Z0-9]{1,3}(\.[a-zA-Z0-9]{1,3}){0,3})?",
        ) {
            let (a, b) = (version(&a), version(&b));
            prop_assert_eq!(a.cmp(&b), a.precedence_key().cmp(&b.precedence_key()));
        }
    }
}
