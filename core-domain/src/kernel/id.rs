//! Typed ids, all from the one list of records.
//!
//! Ids are opaque text. Those we make are UUIDv7, so that inserts are sorted; those read from a path are accepted
//! when they could be an id at all, so that an unknown one is "not found" rather than "invalid".

use super::{Entropy, TextValue, Timestamp, for_each_record};

/// Path words of the interface that can never be an id.
const RESERVED: &[&str] = &[
    "lookup",
    "audit",
    "domains",
    "resources",
    "health",
    "latest",
    "pending",
    "versions",
    "webhooks",
];

const MAX_LENGTH: usize = 128;

/// Tells whether the text could be an id: 1 to 128 characters of `[A-Za-z0-9_.:-]` and no reserved path word.
#[must_use]
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_LENGTH
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'))
        && !RESERVED.contains(&text)
}

/// A new UUIDv7 in its hyphenated form, made of the given instant and entropy.
#[must_use]
pub fn new_uuid(now: Timestamp, entropy: &dyn Entropy) -> String {
    let mut random = [0_u8; 10];
    entropy.fill(&mut random);
    let millis = u64::try_from(now.millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random)
        .into_uuid()
        .to_string()
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// A new id that sorts by the time it was made.
            #[must_use]
            pub fn generate(now: Timestamp, entropy: &dyn Entropy) -> Self {
                Self(new_uuid(now, entropy))
            }

            /// Reads an id; `None` when the text cannot be one (see [`is_id`]).
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                is_id(text).then(|| Self(text.to_owned()))
            }

            /// The text of the id.
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
                Self::parse(text)
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
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an id"))
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string", "minLength": 1, "maxLength": MAX_LENGTH,
                    "pattern": "^[A-Za-z0-9_.:-]+$",
                    "examples": ["019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01"],
                })
            }
        }

        crate::kernel::arbitrary!($name);
    )+};
}

macro_rules! ids_of_records {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        ids! { $($(#[doc = $doc] $id,)?)+ }
    };
}
for_each_record!(ids_of_records);

// Ids of what is kept with another record.
ids! {
    /// A grant or denial of a permission to a member.
    GrantId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

    #[test]
    fn ids_made_later_sort_later() {
        let entropy = SeededEntropy::new(1);
        let first = PlatformId::generate(Timestamp::from_millis(1_000), &entropy);
        let second = PlatformId::generate(Timestamp::from_millis(1_001), &entropy);
        assert!(first < second);
    }

    #[test]
    fn reserved_path_words_and_strange_text_are_no_ids() {
        for text in ["", "lookup", "pending", "a/b", "a b", "é", &"x".repeat(129)] {
            assert_eq!(EntityId::parse(text), None, "{text}");
        }
        assert!(EntityId::parse("01890a5d-ac96-774b-bcce-b302099a8057").is_some());
    }
}
