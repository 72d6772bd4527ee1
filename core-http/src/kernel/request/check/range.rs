//! The ranges of the formats of integers, as explicit limits of a schema.

use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Number, Value};

/// Adds the limits of its format to every integer: a field of the type `i64` has the format `int64`, and gets `minimum`
/// and `maximum`. A number outside the range is then refused like every other invalid value, with the path of its field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntegerRanges;

impl Transform for IntegerRanges {
    fn transform(&mut self, schema: &mut Schema) {
        let format = schema.get("format").and_then(Value::as_str);
        if let Some((least, most)) = format.and_then(range_of) {
            let fields = schema.ensure_object();
            fields.entry("minimum").or_insert_with(|| least.into());
            fields.entry("maximum").or_insert_with(|| most.into());
        }
        transform_subschemas(self, schema);
    }
}

/// Returns the smallest and the largest number of a format; `None` for every other format.
fn range_of(format: &str) -> Option<(Number, Number)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" | "int" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (u8::MIN.into(), u8::MAX.into()),
        "uint16" => (u16::MIN.into(), u16::MAX.into()),
        "uint32" => (u32::MIN.into(), u32::MAX.into()),
        "uint64" | "uint" => (u64::MIN.into(), u64::MAX.into()),
        _ => return None,
    })
}
