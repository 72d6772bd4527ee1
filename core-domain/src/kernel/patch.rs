//! Partial updates: a field that is absent, `null` or set, and the commands that contain such fields.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

/// The change of an optional field in an update command. The field needs `#[serde(default)]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub enum Patch<T> {
    /// The field is absent from the command and keeps its value.
    #[default]
    Keep,
    /// The field is `null` in the command and is cleared.
    Clear,
    /// The field has a value in the command and is set to it.
    Set(T),
}

impl<T> Patch<T> {
    /// Applies the change to a field of a record.
    pub fn apply<F: From<T>>(self, field: &mut Option<F>) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = None,
            Self::Set(value) => *field = Some(value.into()),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// Declares a command that updates a record. Each field is declared once. It becomes an optional field of the command,
/// and `apply_to` copies it to the record's field with the same name.
///
/// - `set`: fields that always have a value.
/// - `optional`: fields that can be unset; the command uses [`Patch`].
/// - `also`: fields that a rule applies; `apply_to` ignores them.
macro_rules! update_command {
    (
        $(#[$meta:meta])*
        pub struct $command:ident for $record:ident {
            $(set { $($(#[$fmeta:meta])* $field:ident: $type:ty,)+ })?
            $(also { $($(#[$ometa:meta])* $other:ident: $other_type:ty,)+ })?
            $(optional { $($(#[$pmeta:meta])* $optional:ident: $optional_type:ty,)+ })?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $command {
            $($(
                $(#[$fmeta])*
                #[serde(default)]
                pub $field: Option<$type>,
            )+)?
            $($($(#[$ometa])* #[serde(default)] pub $other: $other_type,)+)?
            $($($(#[$pmeta])* #[serde(default)] pub $optional: $crate::kernel::Patch<$optional_type>,)+)?
        }

        impl $command {
            /// Applies the fields of `set` and `optional` to the record.
            pub(crate) fn apply_to(self, record: &mut $record) {
                $($(if let Some(value) = self.$field {
                    record.$field = value.into();
                })+)?
                $($(self.$optional.apply(&mut record.$optional);)+)?
            }
        }
    };
}
pub(crate) use update_command;
