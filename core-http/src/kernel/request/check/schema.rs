//! A schema, read from JSON: the keywords of draft 2020-12 that types of Rust have.

use std::collections::BTreeMap;

use core_domain::kernel::PLAIN_NAME;
use regex::Regex;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

use super::pattern;
use crate::kernel::endpoint::shapes;

/// The constraints of a value: keywords of JSON Schema, and `x-maxBytes`. No keyword is passed over in silence: one that is not known is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Schema {
    /// The schema `false`.
    #[serde(skip)]
    pub(super) never: bool,
    #[serde(rename = "type")]
    pub(super) types: Option<Types>,
    #[serde(rename = "const", deserialize_with = "given")]
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
    /// Bytes of the JSON text without white space.
    #[serde(rename = "x-maxBytes")]
    pub(super) max_bytes: Option<u64>,
    pub(super) required: Vec<String>,
    pub(super) properties: BTreeMap<String, Subschema>,
    pub(super) additional_properties: Subschema,
    pub(super) all_of: Vec<Subschema>,
    pub(super) any_of: Option<Vec<Subschema>>,
    pub(super) one_of: Option<Vec<Subschema>>,
    #[serde(rename = "$ref", deserialize_with = "definition")]
    pub(super) reference: Option<String>,
    #[serde(rename = "$defs")]
    pub(super) definitions: BTreeMap<String, Subschema>,
    // What follows says nothing about which values are good.
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

/// A schema in another one; `None` for one that every value fits.
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

/// One type or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Types {
    One(Type),
    Several(Vec<Type>),
}

impl Types {
    pub(super) fn include(&self, wanted: Type) -> bool {
        match self {
            Self::One(one) => *one == wanted,
            Self::Several(several) => several.contains(&wanted),
        }
    }
}

/// A type of JSON.
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

/// A pattern, as it is written and compiled.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) compiled: Regex,
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let compiled = pattern::compiled(&text)?;
        Ok(Self { text, compiled })
    }
}

/// A format of text; one that is not known fits every text.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Format {
    pub(super) name: String,
    pub(super) fits: fn(&str) -> bool,
}

impl From<String> for Format {
    fn from(name: String) -> Self {
        let fits = match name.as_str() {
            "email" => shapes::email,
            "idn-hostname" => shapes::hostname,
            "date-time" => shapes::date_time,
            "uri" => shapes::uri,
            "uuid" => shapes::uuid,
            PLAIN_NAME => shapes::plain_name,
            _ => |_: &str| true,
        };
        Self { name, fits }
    }
}

/// A value that is there, `null` included.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// The name of the definition that is referred to.
fn definition<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let reference = String::deserialize(from)?;
    let name = reference.strip_prefix("#/$defs/");
    let name = name.ok_or_else(|| Error::custom(format!("{reference} is no definition")))?;
    Ok(Some(name.to_owned()))
}
