//! Codecs between the fields of records and the values of columns.

use core_domain::kernel::{TextValue, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::table::Type;
use crate::value::{Value, ValueRef};

/// The reason why a value cannot be decoded. The text contains no part of the value, because the value may be a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The value is NULL or has another type.
    #[error("the value is not of type {0:?}")]
    Type(Type),
    /// The number is outside of the field's range.
    #[error("the number is out of range")]
    OutOfRange,
    /// The text is not a valid value of the field's type.
    #[error("the text is not a valid {0}")]
    Text(&'static str),
    /// The JSON does not match the field's type.
    #[error("the JSON does not match the field at line {}, column {}", .0.line(), .0.column())]
    Json(#[source] serde_json::Error),
}

/// An encoding of a `T` in a column. `decode(encode(x))` returns `x`.
pub trait ColumnCodec<T> {
    /// The type of the column.
    const TYPE: Type;
    /// Whether the column may be NULL. Default: `false`.
    const NULLABLE: bool = false;

    /// Encodes the field as the value of the column.
    fn encode(field: &T) -> Value;

    /// Decodes the field from the value of the column.
    ///
    /// # Errors
    /// [`DecodeError`] if [`ColumnCodec::encode`] never produces this value.
    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError>;
}

fn int(value: ValueRef<'_>) -> Result<i64, DecodeError> {
    value.as_int().ok_or(DecodeError::Type(Type::Int))
}

fn text(value: ValueRef<'_>, of: Type) -> Result<&str, DecodeError> {
    value.as_text().ok_or(DecodeError::Type(of))
}

/// Encodes a `bool` as a boolean.
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

/// Encodes an integer of at most 64 bits as a signed 64-bit integer.
#[derive(Debug)]
pub enum Int {}

macro_rules! int_codec {
    ($($number:ty),+) => {$(
        impl ColumnCodec<$number> for Int {
            const TYPE: Type = Type::Int;

            fn encode(field: &$number) -> Value {
                // Numbers above `i64::MAX` do not occur. One that did would be refused when it is read back.
                Value::Int(i64::try_from(*field).unwrap_or(i64::MAX))
            }

            fn decode(value: ValueRef<'_>) -> Result<$number, DecodeError> {
                <$number>::try_from(int(value)?).map_err(|_| DecodeError::OutOfRange)
            }
        }
    )+};
}
int_codec!(i64, u64, i32, u32, u16, u8);

/// Encodes a [`Timestamp`] as the milliseconds since the Unix epoch.
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

/// Encodes a [`TextValue`] as text: ids, validated text, enumerations. Ids that are generated are of type UUID.
#[derive(Debug)]
pub enum Text {}

impl<T: TextValue> ColumnCodec<T> for Text {
    const TYPE: Type = if T::IS_UUID { Type::Uuid } else { Type::Text };

    fn encode(field: &T) -> Value {
        Value::text(field.as_text())
    }

    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError> {
        T::from_text(text(value, <Self as ColumnCodec<T>>::TYPE)?)
            .ok_or_else(|| DecodeError::Text(std::any::type_name::<T>()))
    }
}

/// Encodes a [`TextValue`] as text, also an id that otherwise is of type UUID: for columns with ids that were stored without a
/// check.
#[derive(Debug)]
pub enum AnyText {}

impl<T: TextValue> ColumnCodec<T> for AnyText {
    const TYPE: Type = Type::Text;

    fn encode(field: &T) -> Value {
        Text::encode(field)
    }

    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError> {
        Text::decode(value)
    }
}

/// Encodes any serde type as JSON. For fields that are JSON by nature and for small structures that no query filters
/// by.
#[derive(Debug)]
pub enum Json {}

impl<T: Serialize + DeserializeOwned> ColumnCodec<T> for Json {
    const TYPE: Type = Type::Json;

    fn encode(field: &T) -> Value {
        // A field that cannot be serialized is a mistake in its type. It becomes `null`, which is refused when it is
        // read back.
        serde_json::to_string(field).map_or_else(|_| Value::text("null"), |text| Value::text(&text))
    }

    fn decode(value: ValueRef<'_>) -> Result<T, DecodeError> {
        serde_json::from_str(text(value, Type::Json)?).map_err(DecodeError::Json)
    }
}

/// Encodes an optional field: `None` is NULL.
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

/// Encodes the default value of a field as NULL. Rows with the default take no space for it, and a column that is added
/// later needs no value in the existing rows.
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
    fn decode_errors_do_not_contain_the_value() {
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
        assert_eq!(
            json,
            "the JSON does not match the field at line 1, column 12"
        );
    }

    #[test]
    fn null_decodes_only_into_optional_fields() {
        assert!(matches!(
            <Opt<Int> as ColumnCodec<Option<i64>>>::decode(ValueRef::Null),
            Ok(None)
        ));
        let required = <Int as ColumnCodec<i64>>::decode(ValueRef::Null);
        assert!(matches!(required, Err(DecodeError::Type(Type::Int))));
    }
}
