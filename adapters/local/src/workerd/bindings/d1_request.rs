//! The request of a script to a database. Its queries and parameters are counted while they are parsed.

use std::fmt;

use rusqlite::types::Value as SqlValue;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Maximum number of queries in one request.
const MAX_QUERIES: usize = 1_000;
/// Maximum number of parameters in one query.
pub(super) const MAX_PARAMS: usize = 100;

/// One query: one or more statements. Each statement that has parameters gets all parameters of the query.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) params: Vec<SqlValue>,
}

/// The queries of a request: a single query or a list.
#[derive(Debug)]
pub(super) struct Queries(pub(super) Vec<Query>);

impl<'de> Deserialize<'de> for Queries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QueriesVisitor)
    }
}

struct QueriesVisitor;

impl<'de> Visitor<'de> for QueriesVisitor {
    type Value = Queries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a query or a list of queries")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Queries, A::Error> {
        Ok(Queries(vec![QueryVisitor.visit_map(map)?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Queries, A::Error> {
        let mut queries = Vec::new();
        while let Some(query) = seq.next_element()? {
            if queries.len() == MAX_QUERIES {
                let what = format!("a batch has at most {MAX_QUERIES} queries");
                return Err(A::Error::custom(what));
            }
            queries.push(query);
        }
        Ok(Queries(queries))
    }
}

impl<'de> Deserialize<'de> for Query {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(QueryVisitor)
    }
}

struct QueryVisitor;

impl<'de> Visitor<'de> for QueryVisitor {
    type Value = Query;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a query")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Query, A::Error> {
        let (mut sql, mut params) = (None, Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "sql" => sql = Some(map.next_value()?),
                "params" => params = map.next_value_seed(Params)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let sql = sql.ok_or_else(|| A::Error::missing_field("sql"))?;
        Ok(Query { sql, params })
    }
}

/// Deserializes a list of parameters, or `null`.
struct Params;

impl<'de> DeserializeSeed<'de> for Params {
    type Value = Vec<SqlValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Params {
    type Value = Vec<SqlValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of parameters")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut params = Vec::new();
        while let Some(Param(param)) = seq.next_element()? {
            if params.len() == MAX_PARAMS {
                let what = format!("a query has at most {MAX_PARAMS} parameters");
                return Err(A::Error::custom(what));
            }
            params.push(param);
        }
        Ok(params)
    }
}

/// A JSON value, converted to its SQLite form.
struct Param(SqlValue);

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParamVisitor).map(Self)
    }
}

struct ParamVisitor;

impl<'de> Visitor<'de> for ParamVisitor {
    type Value = SqlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a boolean, a number, a string or a list of bytes")
    }

    fn visit_unit<E>(self) -> Result<SqlValue, E> {
        Ok(SqlValue::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<SqlValue, E> {
        Ok(SqlValue::Integer(i64::from(truth)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<SqlValue, E> {
        Ok(SqlValue::Integer(number))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "JavaScript has no larger integers"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<SqlValue, E> {
        Ok(i64::try_from(number).map_or(SqlValue::Real(number as f64), SqlValue::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<SqlValue, E> {
        Ok(SqlValue::Real(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<SqlValue, E> {
        Ok(SqlValue::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<SqlValue, E> {
        Ok(SqlValue::Text(text))
    }

    /// Converts a list of numbers, which represents bytes, to a blob.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SqlValue, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element::<u8>()? {
            bytes.push(byte);
        }
        Ok(SqlValue::Blob(bytes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> serde_json::Result<Vec<Query>> {
        serde_json::from_str::<Queries>(text).map(|queries| queries.0)
    }

    #[test]
    fn json_values_become_sqlite_values() {
        let text = r#"{ "sql": "x", "params": [null, true, 1, 1.5, "a", [1, 255], 1e300], "other": [{}] }"#;
        let values = vec![
            SqlValue::Null,
            SqlValue::Integer(1),
            SqlValue::Integer(1),
            SqlValue::Real(1.5),
            SqlValue::Text("a".to_owned()),
            SqlValue::Blob(vec![1, 255]),
            SqlValue::Real(1e300),
        ];
        let query = |params| Query {
            sql: "x".to_owned(),
            params,
        };
        assert_eq!(parse(text).unwrap(), [query(values)]);
        let two = r#"[{ "sql": "x", "params": null }, { "sql": "x" }]"#;
        assert_eq!(parse(two).unwrap(), [query(vec![]), query(vec![])]);
        for wrong in ["1", "{}", r#"{ "sql": "x", "params": [[256]] }"#] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn number_of_queries_and_parameters_is_limited() {
        for (count, fits) in [(MAX_PARAMS, true), (MAX_PARAMS + 1, false)] {
            let text = json!({ "sql": "x", "params": vec![1; count] }).to_string();
            assert_eq!(parse(&text).is_ok(), fits, "{count} parameters");
        }
        for (count, fits) in [(MAX_QUERIES, true), (MAX_QUERIES + 1, false)] {
            let text = json!(vec![json!({ "sql": "x" }); count]).to_string();
            assert_eq!(parse(&text).is_ok(), fits, "{count} queries");
        }
    }
}
