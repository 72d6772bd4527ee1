//! Validated text. A value that exists is valid.

use super::TextValue;
use super::text_value::text_enum;

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
            /// [`TextError`] says what is wrong with it.
            pub fn parse(text: &str) -> Result<Self, TextError> {
                $check(text).map(Self)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TextValue for $name {
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

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

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
    bounded(text, 1, 100)?;
    if text.contains('\0') {
        Err(TextError::Malformed)
    } else {
        Ok(text.to_owned())
    }
}

fn reason(text: &str) -> Result<String, TextError> {
    bounded(text, 0, 500)?;
    if text.contains('\0') {
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
    Slug, slug, { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9-]+$" }
}
text! {
    /// What people call a thing: 1 to 100 characters.
    Name, name, { "type": "string", "minLength": 1, "maxLength": 100 }
}
text! {
    /// Why somebody did something, in their words: at most 500 characters.
    Reason, reason, { "type": "string", "maxLength": 500 }
}
text! {
    /// An e-mail address, trimmed and folded to lower case.
    Email, email, { "type": "string", "minLength": 3, "maxLength": 254, "format": "email" }
}

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
