//! How a field of a record becomes a column and comes back.

use core_domain::kernel::{TextValue, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::table::Type;
use crate::value::Value;

/// A way to keep a `T` in a column. `take(put(x))` gives `x` back.
pub trait Kind<T> {
    /// What the column holds.
    const TYPE: Type;
    /// Whether the column may hold nothing.
    const NULLABLE: bool = false;

    /// The value of the column.
    fn put(field: &T) -> Value;

    /// The field; `None` when the value makes no sense.
    fn take(value: Value) -> Option<T>;
}

/// A yes or no.
#[derive(Debug)]
pub enum Bool {}

impl Kind<bool> for Bool {
    const TYPE: Type = Type::Bool;

    fn put(field: &bool) -> Value {
        Value::Bool(*field)
    }

    fn take(value: Value) -> Option<bool> {
        match value {
            Value::Bool(field) => Some(field),
            _ => None,
        }
    }
}

/// A whole number.
#[derive(Debug)]
pub enum Int {}

macro_rules! int {
    ($($number:ty),+) => {$(
        impl Kind<$number> for Int {
            const TYPE: Type = Type::Int;

            fn put(field: &$number) -> Value {
                // Numbers above 2^63 do not occur; one that did would be refused when it is read.
                Value::Int(i64::try_from(*field).unwrap_or(i64::MAX))
            }

            fn take(value: Value) -> Option<$number> {
                <$number>::try_from(value.as_int()?).ok()
            }
        }
    )+};
}
int!(i64, u64, i32, u32, u16, u8);

/// An instant: milliseconds since the epoch.
#[derive(Debug)]
pub enum Time {}

impl Kind<Timestamp> for Time {
    const TYPE: Type = Type::Int;

    fn put(field: &Timestamp) -> Value {
        Value::Int(field.millis())
    }

    fn take(value: Value) -> Option<Timestamp> {
        let millis = value.as_int()?;
        let instant = Timestamp::from_millis(millis);
        (instant.millis() == millis).then_some(instant)
    }
}

/// Anything that is one piece of text: ids, validated text, closed sets of words.
#[derive(Debug)]
pub enum Text {}

impl<T: TextValue> Kind<T> for Text {
    const TYPE: Type = Type::Text;

    fn put(field: &T) -> Value {
        Value::text(field.as_text())
    }

    fn take(value: Value) -> Option<T> {
        T::from_text(value.as_text()?)
    }
}

/// Anything serde can write, kept as JSON. For fields that are JSON by nature or small structures nobody filters by.
#[derive(Debug)]
pub enum Json {}

impl<T: Serialize + DeserializeOwned> Kind<T> for Json {
    const TYPE: Type = Type::Json;

    fn put(field: &T) -> Value {
        // A field that cannot be JSON would be a mistake in its type; `null` is refused when it is read back.
        serde_json::to_string(field).map_or_else(|_| Value::text("null"), |text| Value::text(&text))
    }

    fn take(value: Value) -> Option<T> {
        serde_json::from_str(value.as_text()?).ok()
    }
}

/// A field that may be missing.
#[derive(Debug)]
pub struct Opt<K>(std::marker::PhantomData<K>);

impl<T, K: Kind<T>> Kind<Option<T>> for Opt<K> {
    const TYPE: Type = K::TYPE;
    const NULLABLE: bool = true;

    fn put(field: &Option<T>) -> Value {
        field.as_ref().map_or(Value::Null, K::put)
    }

    fn take(value: Value) -> Option<Option<T>> {
        if value.is_null() {
            return Some(None);
        }
        K::take(value).map(Some)
    }
}
