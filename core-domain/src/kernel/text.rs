//! Validated text. A value that exists is valid.

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// Fewer characters than allowed.
    #[error("is too short")]
    TooShort,
    /// More characters than allowed.
    #[error("is too long")]
    TooLong,
    /// Not of the form wanted.
    #[error("does not have the expected form")]
    Malformed,
    /// With a web address or a line break, where a name is wanted.
    #[error("must not contain a web address or a line break")]
    NotPlain,
}

/// Declares a validated text: a newtype with `parse`, text form, serde and schema.
macro_rules! text {
    ($(#[$meta:meta])* $name:ident, $check:path, $schema:tt) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Checks the text and takes it.
            ///
            /// # Errors
            /// [`TextError`](crate::kernel::TextError) says what is wrong with it.
            pub fn parse(text: &str) -> Result<Self, $crate::kernel::TextError> {
                $check(text).map(Self)
            }

            /// The text.
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

/// Characters that no text for people holds: controls, and those that make text read in another order than it is written.
fn is_forbidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// What a pattern excludes for [`is_forbidden`].
macro_rules! forbidden {
    () => {
        r"\u0000-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069"
    };
}

/// The pattern of a line of text; may be empty.
pub(super) const LINE: &str = concat!("^[^", forbidden!(), "]*$");

/// The pattern of a line of text with something to read in it.
pub(crate) const READABLE_LINE: &str = concat!(
    "^[^",
    forbidden!(),
    "]*[^\\s",
    forbidden!(),
    "][^",
    forbidden!(),
    "]*$"
);

/// As [`READABLE_LINE`], without what no segment of a path holds.
pub(crate) const READABLE_SEGMENT: &str = concat!(
    "^[^/\\\\",
    forbidden!(),
    "]*[^\\s/\\\\",
    forbidden!(),
    "][^/\\\\",
    forbidden!(),
    "]*$"
);

/// The pattern of a text that may have several lines.
const LINES: &str =
    r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]*$";

fn bounded(text: &str, min: usize, max: usize) -> Result<(), TextError> {
    let length = text.chars().count();
    if length < min {
        return Err(TextError::TooShort);
    }
    if length > max {
        return Err(TextError::TooLong);
    }
    Ok(())
}

/// A line of text without blanks at its ends.
pub(super) fn line(text: &str, min: usize, max: usize) -> Result<String, TextError> {
    let text = text.trim();
    bounded(text, min, max)?;
    if text.chars().any(is_forbidden) {
        Err(TextError::Malformed)
    } else {
        Ok(text.to_owned())
    }
}

fn slug(text: &str) -> Result<String, TextError> {
    bounded(text, 1, 63)?;
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
    bounded(text, 0, 500)?;
    let line_end = |c| matches!(c, '\n' | '\r' | '\t');
    if text.chars().any(|c| is_forbidden(c) && !line_end(c)) {
        Err(TextError::Malformed)
    } else {
        Ok(text.to_owned())
    }
}

/// One `@` with a local part of at most 64 bytes and a dotted domain; folded to lower case, so that equal addresses are equal texts.
fn email(text: &str) -> Result<String, TextError> {
    let text = text.trim();
    bounded(text, 3, 254)?;
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
    /// The address part of a name: `^[a-z0-9-]+$`, 1 to 63 characters.
    Slug, slug, { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9-]+$", "examples": ["acme"] }
}
text! {
    /// What people call a thing: 1 to 100 characters on one line, blanks at its ends taken off.
    Name, name, { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_LINE, "examples": ["Acme"] }
}
text! {
    /// Why somebody did something, in their words: at most 500 characters.
    Reason, reason, { "type": "string", "maxLength": 500, "pattern": LINES, "examples": ["The trial is over."] }
}
text! {
    /// An e-mail address, trimmed and folded to lower case.
    Email, email, { "type": "string", "minLength": 3, "maxLength": 254, "format": "email", "examples": ["ada@example.org"] }
}

/// A line of `MIN` to `MAX` characters, blanks at its ends taken off: for what has no rules of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Line<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> Line<MIN, MAX> {
    /// Checks the text and takes it.
    ///
    /// # Errors
    /// [`TextError`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        line(text, MIN, MAX).map(Self)
    }

    /// Takes a text that a narrower type has checked.
    pub(super) const fn from_checked(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Both have the same rules.
impl From<Line<1, 100>> for Name {
    fn from(line: Line<1, 100>) -> Self {
        Self(line.0)
    }
}

/// Empty.
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
    /// Where something runs.
    pub enum Environment {
        /// Development.
        Dev = "dev",
        /// Staging.
        Stg = "stg",
        /// Production.
        Prod = "prod",
    }
}

impl Environment {
    /// Where something runs when nothing is said.
    #[must_use]
    pub const fn prod() -> Self {
        Self::Prod
    }
}

/// A value with exactly one text form: a typed id, a validated text or a closed set of words.
///
/// `from_text(x.as_text())` always gives `x` back; stores rely on it.
pub trait TextValue: Sized + Send + Sync {
    /// The text form.
    fn as_text(&self) -> &str;

    /// Reads the text form; `None` when the text is not a value of this type.
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

/// Declares a closed set of words: an enum with its text form, serde, schema and `ALL`.
macro_rules! text_enum {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The exact word the interface uses.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
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
                schemars::json_schema!({ "type": "string", "enum": [$($text),+] })
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
    fn slugs_are_lower_case_letters_digits_and_dashes() {
        assert!(Slug::parse("a-1").is_ok());
        assert_eq!(Slug::parse(""), Err(TextError::TooShort));
        assert_eq!(Slug::parse(&"a".repeat(64)), Err(TextError::TooLong));
        for bad in ["A", "a_b", "a b", "é"] {
            assert_eq!(Slug::parse(bad), Err(TextError::Malformed), "{bad}");
        }
    }

    #[test]
    fn names_are_trimmed_and_hold_nothing_that_cannot_be_read() {
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
    fn emails_are_trimmed_and_folded() {
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
