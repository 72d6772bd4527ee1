//! Values that are one piece of text in a database column and in JSON.

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
