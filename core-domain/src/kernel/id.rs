//! Typed ids, generated from the list of records ([`for_each_record!`]).
//!
//! Ids are opaque text. New ids are UUIDv7, so that new records are inserted in order. Any text that could be an id is
//! accepted from a path, so that an unknown id is "not found" and not "invalid".

use super::{Entropy, TextValue, Timestamp, for_each_record};

/// Path segments of the interface that cannot be ids.
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

/// Maximum length of an id in characters.
const MAX_LENGTH: usize = 128;

/// Returns whether the text could be an id: 1 to 128 characters of `[A-Za-z0-9_.:-]`, and not a reserved path segment.
#[must_use]
pub fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= MAX_LENGTH
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'))
        && !RESERVED.contains(&text)
}

/// Creates a UUIDv7 from an instant and random bytes. Returns its hyphenated form.
#[must_use]
pub fn new_uuid(now: Timestamp, entropy: &dyn Entropy) -> String {
    let mut random = [0_u8; 10];
    entropy.fill(&mut random);
    let millis = u64::try_from(now.millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random)
        .into_uuid()
        .to_string()
}

/// Returns the first digits of every UUIDv7 of an instant. They sort after the ids of earlier instants, and before those of
/// this and later ones.
#[must_use]
pub fn first_uuid(at: Timestamp) -> String {
    let millis = u64::try_from(at.millis()).unwrap_or(0);
    format!("{:08x}-{:04x}", millis >> 16, millis & 0xffff)
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Generates an id that sorts by its creation time.
            #[must_use]
            pub fn generate(now: Timestamp, entropy: &dyn Entropy) -> Self {
                Self(new_uuid(now, entropy))
            }

            /// Parses an id; `None` if the text cannot be one (see [`is_id`]).
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                is_id(text).then(|| Self(text.to_owned()))
            }

            /// Returns the id as text.
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

// Ids of items that are stored inside another record.
ids! {
    /// The id of a permission grant or denial, which is stored with its member.
    GrantId,
    /// The id of a line of an invoice, which is stored with its invoice.
    InvoiceLineId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

    #[test]
    fn ids_sort_by_creation_time() {
        let entropy = SeededEntropy::new(1);
        let first = PlatformId::generate(Timestamp::from_millis(1_000), &entropy);
        let second = PlatformId::generate(Timestamp::from_millis(1_001), &entropy);
        assert!(first < second);
    }

    #[test]
    fn the_first_digits_of_an_instant_separate_its_ids_from_earlier_ones() {
        let entropy = SeededEntropy::new(5);
        for millis in [1, 0xffff, 0x1_0000, 1_798_761_600_000] {
            let (at, before) = (
                Timestamp::from_millis(millis),
                Timestamp::from_millis(millis - 1),
            );
            for _ in 0..50 {
                assert!(new_uuid(before, &entropy) < first_uuid(at));
                assert!(new_uuid(at, &entropy) >= first_uuid(at));
            }
        }
    }

    #[test]
    fn reserved_path_segments_and_malformed_text_are_not_ids() {
        for text in ["", "lookup", "pending", "a/b", "a b", "é", &"x".repeat(129)] {
            assert_eq!(EntityId::parse(text), None, "{text}");
        }
        assert!(EntityId::parse("01890a5d-ac96-774b-bcce-b302099a8057").is_some());
    }
}
