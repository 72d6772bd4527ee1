//! The compiled form of a JSON Schema: the keywords of draft 2020-12 that occur in schemas of Rust types.

use std::collections::BTreeMap;

use core_domain::kernel::PLAIN_NAME;
use regex::Regex;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

use super::{formats, pattern};

/// The constraints of a value: keywords of JSON Schema, and `x-maxBytes`. An unknown keyword is an error, so that no
/// constraint is ignored silently.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Schema {
    /// `true` for the schema `false`, which no value matches.
    #[serde(skip)]
    pub(super) never: bool,
    #[serde(rename = "type")]
    pub(super) types: Option<Types>,
    #[serde(rename = "const", deserialize_with = "deserialize_present")]
    pub(super) constant: Option<Value>,
    #[serde(rename = "enum")]
    pub(super) words: Option<Vec<Value>>,
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) format: Option<Format>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: bool,
    pub(super) prefix_items: Vec<Subschema>,
    pub(super) items: Subschema,
    pub(super) min_properties: Option<u64>,
    pub(super) max_properties: Option<u64>,
    /// The maximum size of the value as JSON text without white space, in bytes.
    #[serde(rename = "x-maxBytes")]
    pub(super) max_bytes: Option<u64>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Subschema>,
    pub(super) additional_properties: Subschema,
    pub(super) all_of: Vec<Subschema>,
    pub(super) any_of: Option<Vec<Subschema>>,
    pub(super) one_of: Option<Vec<Subschema>>,
    #[serde(rename = "$ref", deserialize_with = "deserialize_reference")]
    pub(super) reference: Option<String>,
    #[serde(rename = "$defs")]
    pub(super) definitions: BTreeMap<String, Subschema>,
    // The following keywords are annotations; they do not constrain values.
    #[serde(rename = "$schema")]
    _meta_schema: IgnoredAny,
    #[serde(rename = "$comment")]
    _comment: IgnoredAny,
    _title: IgnoredAny,
    _description: IgnoredAny,
    _default: IgnoredAny,
    _examples: IgnoredAny,
    _deprecated: IgnoredAny,
    _read_only: IgnoredAny,
    _write_only: IgnoredAny,
}

/// A schema inside another one. `None` is the schema `true`, which every value matches.
#[derive(Debug, Default)]
pub(super) struct Subschema(pub(super) Option<Box<Schema>>);

impl<'de> Deserialize<'de> for Subschema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(from)? {
            Value::Bool(true) => None,
            Value::Bool(false) => Some(Box::new(Schema {
                never: true,
                ..Schema::default()
            })),
            other => Some(Box::new(Schema::deserialize(other).map_err(Error::custom)?)),
        }))
    }
}

/// The keyword `type`: one type, or an array of types.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Types {
    One(Type),
    Several(Vec<Type>),
}

impl Types {
    /// Returns whether the keyword allows this type.
    pub(super) fn include(&self, wanted: Type) -> bool {
        match self {
            Self::One(one) => *one == wanted,
            Self::Several(several) => several.contains(&wanted),
        }
    }
}

/// A JSON type, as the keyword `type` names it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// The keyword `pattern`: the regular expression as text, and compiled.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) compiled: Regex,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let compiled = pattern::compile(&text)?;
        Ok(Self { text, compiled })
    }
}

/// The keyword `format`: its name, and the check. An unknown format matches every text.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Format {
    pub(super) name: String,
    pub(super) fits: fn(&str) -> bool,
}

impl From<String> for Format {
    fn from(name: String) -> Self {
        let fits = match name.as_str() {
            "email" => formats::email,
            "idn-hostname" => formats::hostname,
            "date-time" => formats::date_time,
            "uri" => formats::uri,
            "uuid" => formats::uuid,
            PLAIN_NAME => formats::plain_name,
            _ => |_: &str| true,
        };
        Self { name, fits }
    }
}

/// Deserializes a value that is present, also if it is `null`.
fn deserialize_present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Deserializes a reference, and returns the name of its definition.
fn deserialize_reference<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let reference = String::deserialize(from)?;
    let name = reference.strip_prefix("#/$defs/");
    let name = name.ok_or_else(|| Error::custom(format!("{reference} is not in $defs")))?;
    Ok(Some(name.to_owned()))
}
