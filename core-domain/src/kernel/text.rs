//! Validated text. A value of these types is always valid.

/// The reason why a text was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The text has fewer characters than allowed.
    #[error("is too short")]
    TooShort,
    /// The text has more characters than allowed.
    #[error("is too long")]
    TooLong,
    /// The text contains an invalid character or does not have the expected form.
    #[error("does not have the expected form")]
    Malformed,
    /// The name contains a web address or a line break.
    #[error("must not contain a web address or a line break")]
    NotPlain,
}

/// Declares a validated text: a newtype with `parse`, text form, serde implementations and schema.
macro_rules! text {
    ($(#[$meta:meta])* $name:ident, $check:path, $schema:tt) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Parses the text.
            ///
            /// # Errors
            /// [`TextError`](crate::kernel::TextError) names the rule that the text breaks.
            pub fn parse(text: &str) -> Result<Self, $crate::kernel::TextError> {
                $check(text).map(Self)
            }

            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::kernel::TextValue for $name {
            fn as_text(&self) -> &str {
                &self.0
            }

            fn from_text(text: &str) -> Option<Self> {
                Self::parse(text).ok()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }

        crate::kernel::arbitrary!($name);
    };
}
pub(crate) use text;

/// Returns whether a text for people must not contain the character: control characters, and characters that change the
/// direction of the text.
fn is_forbidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The characters of [`is_forbidden`], for a character class of a pattern.
macro_rules! forbidden {
    () => {
        r"\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069"
    };
}

/// The pattern of one line of text, which can be empty.
pub(super) const LINE: &str = concat!("^[^", forbidden!(), "]*$");

/// The pattern of one line of text with at least one visible character.
pub(crate) const READABLE_LINE: &str = concat!(
    "^[^",
    forbidden!(),
    "]*[^\\s",
    forbidden!(),
    "][^",
    forbidden!(),
    "]*$"
);

/// Like [`READABLE_LINE`], without the characters `/` and `\`, so that the text fits into one segment of a path.
pub(crate) const READABLE_SEGMENT: &str = concat!(
    "^[^/\\\\",
    forbidden!(),
    "]*[^\\s/\\\\",
    forbidden!(),
    "][^/\\\\",
    forbidden!(),
    "]*$"
);

/// The pattern of a text with any number of lines.
const LINES: &str =
    r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]*$";

fn check_length(text: &str, min: usize, max: usize) -> Result<(), TextError> {
    let length = text.chars().count();
    if length < min {
        return Err(TextError::TooShort);
    }
    if length > max {
        return Err(TextError::TooLong);
    }
    Ok(())
}

/// Returns the text without surrounding white space if it is one valid line with `min` to `max` characters.
pub(super) fn line(text: &str, min: usize, max: usize) -> Result<String, TextError> {
    let text = text.trim();
    check_length(text, min, max)?;
    if text.chars().any(is_forbidden) {
        Err(TextError::Malformed)
    } else {
        Ok(text.to_owned())
    }
}

fn slug(text: &str) -> Result<String, TextError> {
    check_length(text, 1, 63)?;
    let good = text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if good {
        Ok(text.to_owned())
    } else {
        Err(TextError::Malformed)
    }
}

fn name(text: &str) -> Result<String, TextError> {
    line(text, 1, 100)
}

fn reason(text: &str) -> Result<String, TextError> {
    check_length(text, 0, 500)?;
    let line_end = |c| matches!(c, '\n' | '\r' | '\t');
    if text.chars().any(|c| is_forbidden(c) && !line_end(c)) {
        Err(TextError::Malformed)
    } else {
        Ok(text.to_owned())
    }
}

/// Parses an address with one `@`, a local part of at most 64 bytes, and a domain with a dot. Converts it to lower
/// case, so that equal addresses are equal texts.
fn email(text: &str) -> Result<String, TextError> {
    let text = text.trim();
    check_length(text, 3, 254)?;
    let (local, domain) = text.rsplit_once('@').ok_or(TextError::Malformed)?;
    let local_good = !local.is_empty()
        && local.len() <= 64
        && !local.starts_with('.')
        && !local.ends_with('.')
        && !local.contains("..")
        && local
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+/=?^_`{|}~.-".contains(c));
    let label_good = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if local_good && domain.contains('.') && domain.split('.').all(label_good) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(TextError::Malformed)
    }
}

text! {
    /// A name for use in addresses: 1 to 63 characters of `[a-z0-9-]`.
    Slug, slug, { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9-]+$", "examples": ["acme"] }
}
text! {
    /// A display name: 1 to 100 characters on one line. Surrounding white space is removed.
    Name, name, { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_LINE, "examples": ["Acme"] }
}
text! {
    /// The reason for an operation, in the caller's words: at most 500 characters.
    Reason, reason, { "type": "string", "maxLength": 500, "pattern": LINES, "examples": ["The trial is over."] }
}
text! {
    /// An email address. Surrounding white space is removed, and letters are converted to lower case.
    Email, email, { "type": "string", "minLength": 3, "maxLength": 254, "format": "email", "examples": ["ada@example.org"] }
}

/// One line of `MIN` to `MAX` characters, for text without rules of its own. Surrounding white space is removed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Line<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> Line<MIN, MAX> {
    /// Parses the text.
    ///
    /// # Errors
    /// [`TextError`] names the rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        line(text, MIN, MAX).map(Self)
    }

    /// Creates the value from a text that a stricter type has checked.
    pub(super) const fn from_checked(text: String) -> Self {
        Self(text)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Cannot fail, because both types have the same rules.
impl From<Line<1, 100>> for Name {
    fn from(line: Line<1, 100>) -> Self {
        Self(line.0)
    }
}

/// The empty text.
impl<const MAX: usize> Default for Line<0, MAX> {
    fn default() -> Self {
        Self(String::new())
    }
}

impl<const MIN: usize, const MAX: usize> TextValue for Line<MIN, MAX> {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl<const MIN: usize, const MAX: usize> AsRef<str> for Line<MIN, MAX> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl<const MIN: usize, const MAX: usize> std::fmt::Display for Line<MIN, MAX> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de, const MIN: usize, const MAX: usize> serde::Deserialize<'de> for Line<MIN, MAX> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl<const MIN: usize, const MAX: usize> schemars::JsonSchema for Line<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Line{MIN}To{MAX}").into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let pattern = if MIN == 0 { LINE } else { READABLE_LINE };
        schemars::json_schema!({ "type": "string", "minLength": MIN, "maxLength": MAX, "pattern": pattern, "examples": ["main"] })
    }
}

crate::kernel::arbitrary!(@schema [const MIN: usize, const MAX: usize] Line<MIN, MAX>);

text_enum! {
    /// The environment in which a resource, stack or deployment runs.
    pub enum Environment {
        /// The development environment.
        Dev = "dev",
        /// The staging environment.
        Stg = "stg",
        /// The production environment.
        Prod = "prod",
    }
}

impl Environment {
    /// Returns the default of requests that name no environment: production.
    #[must_use]
    pub const fn prod() -> Self {
        Self::Prod
    }
}

/// A value with exactly one text form: a typed id, a validated text or one of a fixed set of words.
///
/// `from_text(x.as_text())` always returns `x`; stores rely on it.
pub trait TextValue: Sized + Send + Sync {
    /// `true` if every stored value is a UUID in the form of [`is_uuid`](super::is_uuid), so that a database can store its 16
    /// bytes. Default: `false`.
    const IS_UUID: bool = false;

    /// Returns the text form.
    fn as_text(&self) -> &str;

    /// Parses the text form; `None` if the text is not a value of this type.
    fn from_text(text: &str) -> Option<Self>;
}

impl TextValue for String {
    fn as_text(&self) -> &str {
        self
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

/// Declares an enum with a fixed set of words: its text form, serde implementations, schema and `ALL`.
macro_rules! text_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[doc = $doc:literal])* $variant:ident = $text:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[doc = $doc])* $variant),+ }

        impl $name {
            /// All values in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word that the interface uses.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Describes the value: its doc comment, as the API reference shows it.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*)),+ }.trim_start()
            }
        }

        impl $crate::kernel::TextValue for $name {
            fn as_text(&self) -> &str {
                self.as_str()
            }

            fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                <Self as $crate::kernel::TextValue>::from_text(&text)
                    .ok_or_else(|| serde::de::Error::unknown_variant(&text, &[$($text),+]))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let values = Self::ALL.iter().map(|value| format!("- `{value}`: {}", value.description()));
                let description = values.collect::<Vec<_>>().join("\n");
                schemars::json_schema!({ "type": "string", "enum": [$($text),+], "description": description })
            }
        }

        $crate::kernel::arbitrary!($name);
    };
}
pub(crate) use text_enum;

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn slugs_consist_of_lower_case_letters_digits_and_hyphens() {
        assert!(Slug::parse("a-1").is_ok());
        assert_eq!(Slug::parse(""), Err(TextError::TooShort));
        assert_eq!(Slug::parse(&"a".repeat(64)), Err(TextError::TooLong));
        for bad in ["A", "a_b", "a b", "é"] {
            assert_eq!(Slug::parse(bad), Err(TextError::Malformed), "{bad}");
        }
    }

    #[test]
    fn names_are_trimmed_and_reject_unreadable_characters() {
        assert_eq!(
            Name::parse("  Ada Lovelace ").unwrap().as_str(),
            "Ada Lovelace"
        );
        assert_eq!(Name::parse(" \t "), Err(TextError::TooShort));
        assert_eq!(Name::parse(&"a".repeat(101)), Err(TextError::TooLong));
        for bad in ["a\0b", "a\nb", "evil\u{202E}txt", "\u{2066}a", "a\u{7f}"] {
            assert_eq!(Name::parse(bad), Err(TextError::Malformed), "{bad:?}");
        }
        assert_eq!(Line::<0, 5>::parse(" ").unwrap().as_str(), "");
        assert!(Reason::parse("first\nsecond").is_ok());
        assert!(Reason::parse("a\u{202E}b").is_err());
    }

    #[test]
    fn emails_are_trimmed_and_converted_to_lower_case() {
        assert_eq!(
            Email::parse(" Ada@Example.ORG ").unwrap().as_str(),
            "ada@example.org"
        );
        for bad in [
            "ada",
            "@example.org",
            "ada@localhost",
            "a..b@example.org",
            "ada@-x.org",
            "a b@example.org",
            "ada@exa mple.org",
        ] {
            assert_eq!(Email::parse(bad), Err(TextError::Malformed), "{bad}");
        }
    }
}
