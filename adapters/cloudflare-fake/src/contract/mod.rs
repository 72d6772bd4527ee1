//! Validation of an exchange against Cloudflare's OpenAPI document: path, query and body of the request, status and
//! body of the response.

mod body;

use std::io;
use std::path::Path;

pub use core_fake_kit::contract::Finding;
use core_fake_kit::contract::{Document, Formats, Operation, Schemas};
use serde_json::{Value, json};

use crate::journal::Exchange;

/// The parsed OpenAPI document.
#[derive(Debug)]
pub struct Contract(Document);

impl Contract {
    /// Reads the document.
    ///
    /// # Errors
    /// [`io::Error`] if the file does not exist or is not valid JSON.
    pub fn read(file: &Path) -> io::Result<Self> {
        Document::read(file, Formats::Checked).map(Self)
    }

    /// Creates a contract from an OpenAPI 3.0 document.
    #[must_use]
    pub fn new(document: &Value) -> Self {
        Self(Document::new(document, Formats::Checked))
    }

    /// Returns all operations in the form that findings use.
    #[must_use]
    pub fn operations(&self) -> Vec<String> {
        self.0.operations()
    }

    /// Checks an exchange. The response is not checked if a fault caused it.
    #[must_use]
    pub fn check(&self, exchange: &Exchange) -> Finding {
        let recorded = &exchange.recorded;
        self.0.check(&recorded.method, &recorded.path, |operation| {
            let mut violations = self.check_parameters(operation, exchange);
            violations.extend(self.check_request(operation.definition, exchange));
            if !exchange.is_fault {
                violations.extend(self.check_response(operation.definition, exchange));
            }
            violations
        })
    }

    const fn schemas(&self) -> &Schemas {
        self.0.schemas()
    }

    fn check_parameters(&self, operation: &Operation<'_>, exchange: &Exchange) -> Vec<String> {
        let documented: Vec<_> = operation.definition["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        let named = |place: &str, name: &str| {
            documented
                .iter()
                .find(|own| own["in"] == place && own["name"] == name)
        };
        let mut violations = Vec::new();
        for (name, value) in &operation.path {
            if let Some(parameter) = named("path", name) {
                violations.extend(self.check_text(&parameter["schema"], name, value));
            }
        }
        for (name, value) in &exchange.query {
            let (base, member) = name.split_once('.').unwrap_or((name, ""));
            match named("query", base) {
                None => violations.push(format!("query {name}: there is no such parameter")),
                Some(parameter) => {
                    let schema = self.schemas().resolve(&parameter["schema"]);
                    violations.extend(self.check_query(schema, name, member, value));
                }
            }
        }
        for parameter in documented
            .iter()
            .filter(|own| own["in"] == "query" && own["required"] == true)
        {
            if !exchange
                .query
                .iter()
                .any(|(name, _)| parameter["name"] == **name)
            {
                violations.push(format!("query {}: it is missing", parameter["name"]));
            }
        }
        violations
    }

    /// Checks a query parameter. Members of an object are sent with a dot. A plain value is the older form, which is
    /// still valid.
    fn check_query(&self, schema: &Value, name: &str, member: &str, value: &str) -> Vec<String> {
        match (&schema["properties"], member) {
            (Value::Null, _) => self.check_text(schema, name, value),
            (_, "") => Vec::new(),
            (members, member) if members.get(member).is_some() => {
                self.check_text(&members[member], name, value)
            }
            _ => vec![format!("query {name}: there is no such member")],
        }
    }

    /// Checks a text value of a path or query. It matches the type of its schema if it can be parsed as that type.
    fn check_text(&self, schema: &Value, name: &str, text: &str) -> Vec<String> {
        let read = match self.schemas().resolve(schema)["type"].as_str() {
            Some("number" | "integer" | "boolean") => {
                serde_json::from_str(text).unwrap_or_else(|_| json!(text))
            }
            Some("array") => text.split(',').collect(),
            _ => json!(text),
        };
        self.schemas().check(schema, &read, name)
    }

    fn check_request(&self, operation: &Value, exchange: &Exchange) -> Vec<String> {
        let content = &operation["requestBody"]["content"];
        if content.is_null() {
            let is_empty = exchange.request.is_empty();
            return if is_empty {
                Vec::new()
            } else {
                vec!["request: the operation takes no body".to_owned()]
            };
        }
        let kind = exchange.request_type.as_deref().unwrap_or_default();
        if kind.starts_with("multipart/form-data") {
            return match content.get("multipart/form-data") {
                Some(form) => {
                    body::check_form(self.schemas(), &form["schema"], kind, &exchange.request)
                }
                None => vec!["request: the operation takes no form".to_owned()],
            };
        }
        match content.get("application/json") {
            Some(json) => self
                .schemas()
                .check_json(&json["schema"], &exchange.request, "request"),
            None if content.get("application/octet-stream").is_some() => Vec::new(),
            None => vec!["request: the operation takes a form alone".to_owned()],
        }
    }

    fn check_response(&self, operation: &Value, exchange: &Exchange) -> Vec<String> {
        let status = exchange.recorded.status.unwrap_or_default();
        let response = match operation["responses"].get(status.to_string()) {
            None if status < 400 => {
                return vec![format!("response: status {status} is not documented")];
            }
            // Cloudflare documents few of its errors; all have the same schema.
            None => self.0.response("bad_request"),
            Some(response) => match response["$ref"].as_str() {
                Some(reference) => self
                    .0
                    .response(reference.rsplit('/').next().unwrap_or_default()),
                None => response,
            },
        };
        self.schemas()
            .check_response(response, &exchange.response_type, &exchange.response)
    }
}
