//! Changes of records: a field that is absent, `null` or a value, and the commands that carry them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

/// What a change says about a field that may be unset. Put `#[serde(default)]` on the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub enum Patch<T> {
    /// Not mentioned: stays as it is.
    #[default]
    Keep,
    /// `null`: is unset.
    Clear,
    /// A value: is set.
    Set(T),
}

impl<T> Patch<T> {
    /// Applies the change to a field.
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

/// Declares the command that changes a record: each field is written once, here, and becomes a field of the command and
/// a change of the record's field of the same name. Fields that always have a value stand in `set`, those that may be
/// unset in `optional`; those that the command only carries, because a rule decides about them, in `also`.
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
            /// Applies the fields that need no rule to the record.
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
