//! Encodes values as bytes that have the same sort order as the values.

use core_domain::kernel::StoreError;
use core_storage::{Row, Value};

const NULL: u8 = 0;
const BOOL: u8 = 1;
const INT: u8 = 2;
const TEXT: u8 = 3;

/// Appends a value. Text cannot contain NUL (`Type::accepts`), so NUL ends a text, and a prefix sorts before longer
/// texts.
pub(crate) fn encode(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(NULL),
        Value::Bool(yes) => bytes.extend([BOOL, u8::from(*yes)]),
        Value::Int(number) => {
            bytes.push(INT);
            // With the sign bit inverted, negative numbers sort first.
            bytes.extend((number ^ i64::MIN).to_be_bytes());
        }
        Value::Text(text) => {
            bytes.push(TEXT);
            bytes.extend(text.as_bytes());
            bytes.push(0);
        }
    }
}

pub(crate) fn encode_row(row: &Row) -> Vec<u8> {
    let mut bytes = Vec::new();
    row.iter().for_each(|value| encode(&mut bytes, value));
    bytes
}

pub(crate) fn decode_row(mut bytes: &[u8]) -> Result<Row, StoreError> {
    let mut row = Row::new();
    while !bytes.is_empty() {
        let (value, rest) = decode(bytes).ok_or_else(damaged_row_error)?;
        row.push(value);
        bytes = rest;
    }
    Ok(row)
}

fn decode(bytes: &[u8]) -> Option<(Value, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    match *kind {
        NULL => Some((Value::Null, rest)),
        BOOL => {
            let (yes, rest) = rest.split_first()?;
            Some((Value::Bool(*yes != 0), rest))
        }
        INT => {
            let (number, rest) = rest.split_first_chunk::<8>()?;
            Some((Value::Int(i64::from_be_bytes(*number) ^ i64::MIN), rest))
        }
        TEXT => {
            let end = rest.iter().position(|byte| *byte == 0)?;
            let text = std::str::from_utf8(rest.get(..end)?).ok()?;
            Some((Value::text(text), rest.get(end + 1..)?))
        }
        _ => None,
    }
}

pub(crate) fn damaged_row_error() -> StoreError {
    StoreError::backend("a row in the file is damaged")
}
