//! How a field of a record is encoded as the value of a column, and decoded from it.

use core_domain::kernel::{TextValue, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::table::Type;
use crate::value::{Value, ValueRef};

/// Why a value cannot be decoded. The text shows no part of the value: it may be a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The value is NULL or of another type.
    #[error("the value is not of type {0:?}")]
    Type(Type),
    /// The number does not fit the field.
    #[error("the number is out of range")]
    OutOfRange,
    /// The text is not a value of the field's type.
    #[error("the text is no {0}")]
    Text(&'static str),
    /// The JSON does not have the shape of the field's type.
    #[error("the JSON does not fit at line {}, column {}", .0.line(), .0.column())]
    Json(#[source] serde_json::Error),
}

/// An encoding of a `T` in a column. `decode(encode(x))` gives `x` back.
pub trait ColumnCodec<T> {
    /// The type of the column.
    const TYPE: Type;
    /// Whether the column may be NULL.
    const NULLABLE: bool = false;

    /// The value of the column.
    fn encode(field: &T) -> Value;

    /// The field.
    ///
    /// # Errors
    /// [`DecodeError`] when the value is none that [`ColumnCodec::encode`] makes.
    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError>;
}

fn int(value: ValueRef<'_>) -> Result<i64, DecodeError> {
    value.as_int().ok_or(DecodeError::Type(Type::Int))
}

fn text(value: ValueRef<'_>, of: Type) -> Result<&str, DecodeError> {
    value.as_text().ok_or(DecodeError::Type(of))
}

/// A boolean.
#[derive(Debug)]
pub enum Bool {}

impl ColumnCodec<bool> for Bool {
    const TYPE: Type = Type::Bool;

    fn encode(field: &bool) -> Value {
        Value::Bool(*field)
    }

    fn decode(value: ValueRef<'_>) -> Result<bool, DecodeError> {
        match value {
            ValueRef::Bool(field) => Ok(field),
            _ => Err(DecodeError::Type(Type::Bool)),
        }
    }
}

/// An integer.
#[derive(Debug)]
pub enum Int {}

macro_rules! int_codec {
    ($($number:ty),+) => {$(
        impl ColumnCodec<$number> for Int {
            const TYPE: Type = Type::Int;

            fn encode(field: &$number) -> Value {
                // Numbers above 2^63 do not occur; one that did would be refused when it is read.
                Value::Int(i64::try_from(*field).unwrap_or(i64::MAX))
            }

            fn decode(value: ValueRef<'_>) -> Result<$number, DecodeError> {
                <$number>::try_from(int(value)?).map_err(|_| DecodeError::OutOfRange)
            }
        }
    )+};
}
int_codec!(i64, u64, i32, u32, u16, u8);

/// An instant: milliseconds since the epoch.
#[derive(Debug)]
pub enum Time {}

impl ColumnCodec<Timestamp> for Time {
    const TYPE: Type = Type::Int;

    fn encode(field: &Timestamp) -> Value {
        Value::Int(field.millis())
    }

    fn decode(value: ValueRef<'_>) -> Result<Timestamp, DecodeError> {
        let millis = int(value)?;
        let instant = Timestamp::from_millis(millis);
        if instant.millis() == millis {
            Ok(instant)
        } else {
            Err(DecodeError::OutOfRange)
        }
    }
}

/// A [`TextValue`]: an id, validated text, an enumeration.
#[derive(Debug)]
pub enum Text {}

impl<T: TextValue> ColumnCodec<T> for Text {
    const TYPE: Type = Type::Text;

    fn encode(field: &T) -> Value {
        Value::text(field.as_text())
    }

    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError> {
        T::from_text(text(value, Type::Text)?)
            .ok_or_else(|| DecodeError::Text(std::any::type_name::<T>()))
    }
}

/// Anything serde can serialize, kept as JSON. For fields that are JSON by nature or small structures nobody filters by.
#[derive(Debug)]
pub enum Json {}

impl<T: Serialize + DeserializeOwned> ColumnCodec<T> for Json {
    const TYPE: Type = Type::Json;

    fn encode(field: &T) -> Value {
        // A field that cannot be JSON would be a mistake in its type; `null` is refused when it is read back.
        serde_json::to_string(field).map_or_else(|_| Value::text("null"), |text| Value::text(&text))
    }

    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError> {
        serde_json::from_str(text(value, Type::Json)?).map_err(DecodeError::Json)
    }
}

/// An optional field: NULL when it is absent.
#[derive(Debug)]
pub struct Opt<C>(std::marker::PhantomData<C>);

impl<T, C: ColumnCodec<T>> ColumnCodec<Option<T>> for Opt<C> {
    const TYPE: Type = C::TYPE;
    const NULLABLE: bool = true;

    fn encode(field: &Option<T>) -> Value {
        field.as_ref().map_or(Value::Null, C::encode)
    }

    fn decode(value: ValueRef<'_>) -> Result<Option<T>, DecodeError> {
        if value.is_null() {
            return Ok(None);
        }
        C::decode(value).map(Some)
    }
}

/// A field whose default is NULL: what most records do not have takes no room in them, and a column that comes later needs no
/// value in those that are there.
#[derive(Debug)]
pub struct OrDefault<C>(std::marker::PhantomData<C>);

impl<T: Default + PartialEq, C: ColumnCodec<T>> ColumnCodec<T> for OrDefault<C> {
    const TYPE: Type = C::TYPE;
    const NULLABLE: bool = true;

    fn encode(field: &T) -> Value {
        if *field == T::default() {
            return Value::Null;
        }
        C::encode(field)
    }

    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError> {
        if value.is_null() {
            return Ok(T::default());
        }
        C::decode(value)
    }
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::Slug;

    use super::*;

    fn error<T, C: ColumnCodec<T>>(value: Value) -> String {
        match C::decode(value.as_ref()) {
            Ok(_) => "decoded".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_value_that_cannot_be_decoded_is_explained_without_being_shown() {
        let text = Value::text("Secret!");
        assert_eq!(
            error::<i64, Int>(text.clone()),
            "the value is not of type Int"
        );
        assert_eq!(
            error::<u8, Int>(Value::Int(256)),
            "the number is out of range"
        );
        assert_eq!(
            error::<Timestamp, Time>(Value::Int(i64::MAX)),
            "the number is out of range"
        );
        assert_eq!(
            error::<bool, Bool>(Value::Null),
            "the value is not of type Bool"
        );
        let slug = error::<Slug, Text>(text);
        assert!(slug.ends_with("Slug") && !slug.contains("Secret"), "{slug}");
        let json = error::<Vec<u8>, Json>(Value::text("[1, \"secret\"]"));
        assert_eq!(json, "the JSON does not fit at line 1, column 12");
    }

    #[test]
    fn null_decodes_as_an_absent_optional_field_only() {
        assert!(matches!(
            <Opt<Int> as ColumnCodec<Option<i64>>>::decode(ValueRef::Null),
            Ok(None)
        ));
        let required = <Int as ColumnCodec<i64>>::decode(ValueRef::Null);
        assert!(matches!(required, Err(DecodeError::Type(Type::Int))));
    }
}
