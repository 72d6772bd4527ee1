//! Parses the text of a request: query strings, forms and JSON bodies become values that schemas can validate, and
//! validated values become typed input.

use std::any::TypeId;

use core_domain::kernel::{Code, Error, Issue, Result, number_literal};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use zeroize::Zeroize;

use crate::kernel::request::check::Checker;
use crate::kernel::request::input::{Input, PathParams};
use crate::kernel::request::json::parse_strict;

/// The validated values of a request. The typed input can be created from them any number of times.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    /// The decoded path parameters.
    pub(crate) path: Vec<String>,
    /// The query as an object; `null` if the row takes none.
    pub(crate) query: Value,
    /// The body; `null` if the row takes none.
    pub(crate) body: Value,
}

/// Overwrites the texts of the body, because it can contain passwords and secrets.
impl Drop for ParsedRequest {
    fn drop(&mut self) {
        overwrite(&mut self.body);
    }
}

fn overwrite(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(overwrite),
        Value::Object(fields) => fields.values_mut().for_each(overwrite),
        _ => {}
    }
}

impl ParsedRequest {
    /// Creates a request with these path parameters, without query and body.
    pub(crate) const fn of(path: Vec<String>) -> Self {
        Self {
            path,
            query: Value::Null,
            body: Value::Null,
        }
    }

    /// Returns the typed path parameters.
    ///
    /// # Errors
    /// `NOT_FOUND` if one is not a value of its type.
    pub(crate) fn path<P: PathParams>(&self) -> Result<P> {
        P::parse(&self.path).ok_or(Error::NotFound("resource"))
    }

    /// Returns the typed query.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the type is stricter than its schema.
    pub(crate) fn query<Q: DeserializeOwned + 'static>(&self) -> Result<Q> {
        read(&self.query)
    }

    /// Returns the typed input.
    ///
    /// # Errors
    /// - `NOT_FOUND` if a path parameter is not a value of its type.
    /// - `VALIDATION_ERROR` if a type is stricter than its schema.
    pub(crate) fn input<P, Q, B>(&self) -> Result<Input<P, Q, B>>
    where
        P: PathParams,
        Q: DeserializeOwned + 'static,
        B: DeserializeOwned + 'static,
    {
        Ok(Input {
            path: self.path()?,
            query: self.query()?,
            body: read(&self.body)?,
        })
    }
}

/// Deserializes a validated value. It can still fail, because types can be stricter than a schema can express.
fn read<T: DeserializeOwned + 'static>(value: &Value) -> Result<T> {
    let none = Value::Null;
    let value = if is_unit::<T>() { &none } else { value };
    T::deserialize(value).map_err(|error| {
        Error::Invalid(vec![Issue {
            path: Vec::new(),
            code: "invalid",
            message: error.to_string(),
        }])
    })
}

/// Returns whether the type is `()`, which stands for no query or body.
pub(crate) fn is_unit<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<()>()
}

/// Parses a JSON body. No body is parsed as an empty object.
///
/// # Errors
/// - `UNSUPPORTED_MEDIA_TYPE` if the content type is not JSON.
/// - `MALFORMED_JSON` if the body is not acceptable JSON.
pub(crate) fn json_body(content_type: Option<&str>, bytes: &[u8]) -> Result<Value> {
    if bytes.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    require_json(content_type)?;
    parse_strict(bytes)
}

/// Checks that the content type is JSON. A body without a content type is refused as well: a page of another site can
/// send it without a preflight, which is not possible with JSON.
///
/// # Errors
/// `UNSUPPORTED_MEDIA_TYPE` for every other content type.
pub(crate) fn require_json(content_type: Option<&str>) -> Result<()> {
    if content_type.is_some_and(is_json) {
        return Ok(());
    }
    Err(Error::refused(
        Code::UnsupportedMediaType,
        "The body must have the content type application/json.",
    ))
}

fn is_json(content_type: &str) -> bool {
    let kind = media_type(content_type);
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Returns whether the content type is `application/x-www-form-urlencoded`.
pub(crate) fn is_form(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|t| media_type(t) == "application/x-www-form-urlencoded")
}

fn media_type(content_type: &str) -> String {
    let kind = content_type.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Parses a query string or form into an object. Values are converted to the types of the schema where possible.
/// Unknown names are ignored. If a name occurs more than once, the last value wins, unless the schema expects an array.
///
/// # Errors
/// - `BAD_REQUEST` if the text is not percent-encoded UTF-8.
/// - `VALIDATION_ERROR` if a name or value contains NUL.
pub(crate) fn form_object(text: &[u8], checker: &Checker) -> Result<Value> {
    let pairs: Vec<(String, String)> = serde_urlencoded::from_bytes(text).map_err(|_| {
        Error::refused(
            Code::BadRequest,
            "The parameters are not percent-encoded UTF-8.",
        )
    })?;
    let mut object = Map::new();
    for (name, value) in pairs {
        if name.contains('\0') || value.contains('\0') {
            return Err(Error::invalid(
                name.trim_matches('\0'),
                "pattern",
                "must not contain a NUL character",
            ));
        }
        let Some(property) = checker.schema().pointer(&format!(
            "/properties/{}",
            name.replace('~', "~0").replace('/', "~1")
        )) else {
            continue;
        };
        if allows(property, "array") {
            let item = property
                .get("items")
                .map_or_else(|| Value::String(value.clone()), |i| coerce(&value, i));
            match object
                .entry(name)
                .or_insert_with(|| Value::Array(Vec::new()))
            {
                Value::Array(items) => items.push(item),
                other => *other = item,
            }
        } else {
            object.insert(name, coerce(&value, property));
        }
    }
    Ok(Value::Object(object))
}

/// Converts a value to the type of its schema: an integer, a boolean or text.
fn coerce(text: &str, schema: &Value) -> Value {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if allows(schema, "integer") && whole {
        return integer(text, schema);
    }
    if allows(schema, "boolean") && matches!(text, "true" | "false") {
        return Value::Bool(text == "true");
    }
    Value::String(text.to_owned())
}

/// Converts an integer. One that does not fit becomes the nearest one of 64 bits, unless the schema has a limit, which
/// refuses it.
fn integer(text: &str, schema: &Value) -> Value {
    if let Ok(number) = text.parse::<i64>() {
        return Value::from(number);
    }
    let (limit, end) = if text.starts_with('-') {
        ("minimum", i64::MIN)
    } else {
        ("maximum", i64::MAX)
    };
    if !limits(schema, limit) {
        return Value::from(end);
    }
    let unsigned = text.parse::<u64>().map(Value::from);
    unsigned.unwrap_or_else(|_| number_literal(text))
}

/// Returns whether a schema has this limit, directly or in a branch of `anyOf`.
fn limits(schema: &Value, limit: &str) -> bool {
    let branches = schema.get("anyOf").and_then(Value::as_array);
    schema.get(limit).is_some()
        || branches.is_some_and(|all| all.iter().any(|branch| limits(branch, limit)))
}

/// Returns whether a schema allows a type, directly or in a branch of `anyOf`.
fn allows(schema: &Value, kind: &str) -> bool {
    let named = match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|n| n == kind),
        _ => false,
    };
    let branches = schema.get("anyOf").and_then(Value::as_array);
    named || branches.is_some_and(|all| all.iter().any(|branch| allows(branch, kind)))
}
