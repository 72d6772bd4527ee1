//! Names of people and organizations, which appear in mails.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use unicode_normalization::UnicodeNormalization;

use super::text::{LINE, Line, Name, READABLE_LINE, line};
use super::{TextError, TextValue, arbitrary};

/// The `format` of such names in schemas; see [`is_plain_name`].
pub const PLAIN_NAME: &str = "plain-name";

/// Returns whether a text can be a name in a mail: it is one line and contains no web address.
///
/// A web address is `://`, `www.` at the start of a word, or a domain followed by a slash (`example.org/`).
/// "Booking.com" contains none. Compatibility characters, such as full-width letters, count as the characters they look
/// like.
#[must_use]
pub fn is_plain_name(text: &str) -> bool {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let is_line_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    !text.chars().any(is_line_break)
        && !folded.contains("://")
        && !has_www(&folded)
        && !has_domain_before_slash(&folded)
}

fn has_www(text: &str) -> bool {
    let starts_word = |at: usize| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric())
    };
    text.match_indices("www.").any(|(at, _)| starts_word(at))
}

fn has_domain_before_slash(text: &str) -> bool {
    let before = text.match_indices('/').filter_map(|(at, _)| text.get(..at));
    before.into_iter().any(ends_with_domain)
}

/// Returns whether a text ends with a domain, with or without a port.
fn ends_with_domain(text: &str) -> bool {
    let without_port = match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => text,
    };
    let in_domain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
    let start = without_port.trim_end_matches(in_domain).len();
    let domain = without_port.get(start..).unwrap_or_default();
    let Some((host, top)) = domain.rsplit_once('.') else {
        return false;
    };
    let is_top = top.chars().count() >= 2 && top.chars().all(char::is_alphabetic);
    is_top && host.ends_with(char::is_alphanumeric)
}

/// A name of `MIN` to `MAX` characters on one line and without a web address; see [`is_plain_name`]. Surrounding white
/// space is removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainName<const MIN: usize, const MAX: usize>(String);

/// The name of a person, as the person enters it: 0 to 255 characters.
pub type PersonName = PlainName<0, 255>;

/// The name of an organization, as its owner enters it: 1 to 100 characters.
pub type OrganizationName = PlainName<1, 100>;

impl<const MIN: usize, const MAX: usize> PlainName<MIN, MAX> {
    /// Parses the text.
    ///
    /// # Errors
    /// [`TextError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let text = line(text, MIN, MAX)?;
        match is_plain_name(&text) {
            true => Ok(Self(text)),
            false => Err(TextError::NotPlain),
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> From<PlainName<1, MAX>> for PlainName<0, MAX> {
    fn from(name: PlainName<1, MAX>) -> Self {
        Self(name.0)
    }
}

impl<const MIN: usize, const MAX: usize> From<PlainName<MIN, MAX>> for String {
    fn from(name: PlainName<MIN, MAX>) -> Self {
        name.0
    }
}

/// Returns the form in which a name is stored. It allows web addresses, because stored names can be older than the rule
/// against them.
impl<const MIN: usize, const MAX: usize> From<PlainName<MIN, MAX>> for Line<MIN, MAX> {
    fn from(name: PlainName<MIN, MAX>) -> Self {
        Self::from_checked(name.0)
    }
}

/// Returns the form in which the name of an organization is stored.
impl From<OrganizationName> for Name {
    fn from(name: OrganizationName) -> Self {
        Line::from(name).into()
    }
}

impl<const MIN: usize, const MAX: usize> TextValue for PlainName<MIN, MAX> {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for PlainName<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl<const MIN: usize, const MAX: usize> JsonSchema for PlainName<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("PlainName{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = if MIN == 0 { LINE } else { READABLE_LINE };
        json_schema!({
            "type": "string", "minLength": MIN, "maxLength": MAX, "pattern": pattern, "format": PLAIN_NAME,
            "description": "A name that appears in mails. It must not contain a web address: `://`, `www.` at the start of a \
                            word, or a domain followed by a slash (`example.org/`).",
            "examples": ["Ada Lovelace"],
        })
    }
}

arbitrary!(@schema [const MIN: usize, const MAX: usize] PlainName<MIN, MAX>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_web_address_or_a_line_break_are_refused() {
        for name in [
            "http://evil.example",
            "Click ftp://x",
            "www.evil.example",
            "see:WWW.Evil.example",
            "evil.example/login",
            "Log in at Evil.EXAMPLE/ now",
            "evil.example:8080/",
            "a.b-c.example/x",
            // A full stop, a colon and slashes in full width.
            "evil\u{FF0E}example\u{FF0F}",
            "http\u{FF1A}\u{FF0F}\u{FF0F}evil",
            "Ada\u{2028}Lovelace",
        ] {
            assert!(PersonName::parse(name).is_err(), "{name}");
            assert!(OrganizationName::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn names_that_resemble_web_addresses_are_accepted() {
        for name in [
            "Booking.com",
            "AC/DC",
            "Ada L. / Charles B.",
            "Dr./Prof. Ada",
            "v1.2/beta",
            "awww. so nice",
            "Ratio 3:4",
            "N.A.S.A./ESA",
            "\u{c4}rzte ohne Grenzen e.V.",
        ] {
            assert_eq!(PersonName::parse(name).unwrap().as_str(), name);
            assert_eq!(OrganizationName::parse(name).unwrap().as_str(), name);
        }
        assert!(PersonName::parse("").is_ok() && OrganizationName::parse(" ").is_err());
    }
}
