//! Validation of an exchange against Stripe's OpenAPI document: query and form of the request, status and body of the
//! response.

mod form;

use std::io;
use std::path::Path;

pub use core_fake_kit::contract::Finding;
use core_fake_kit::contract::{Document, Formats};
use serde_json::{Value, json};

use crate::journal::Exchange;
use crate::params::Params;

/// The content type of requests.
const FORM: &str = "application/x-www-form-urlencoded";

/// The parsed OpenAPI document.
#[derive(Debug)]
pub struct Contract(Document);

impl Contract {
    /// Reads the document.
    ///
    /// # Errors
    /// [`io::Error`] if the file does not exist or is not valid JSON.
    pub fn read(file: &Path) -> io::Result<Self> {
        Document::read(file, Formats::Ignored).map(Self)
    }

    /// Creates a contract from an OpenAPI 3.0 document.
    #[must_use]
    pub fn new(document: &Value) -> Self {
        Self(Document::new(document, Formats::Ignored))
    }

    /// Returns all operations in the form that findings use.
    #[must_use]
    pub fn operations(&self) -> Vec<String> {
        self.0.operations()
    }

    /// Checks an exchange. The request is not checked if it was refused, and the response is not checked if a fault
    /// caused it.
    #[must_use]
    pub fn check(&self, exchange: &Exchange) -> Finding {
        let recorded = &exchange.recorded;
        let is_refused = recorded.status.is_some_and(|status| status >= 400);
        self.0.check(&recorded.method, &recorded.path, |operation| {
            let mut violations = Vec::new();
            if !is_refused || exchange.is_fault {
                violations.extend(self.check_request(operation.definition, exchange));
            }
            if !exchange.is_fault {
                violations.extend(self.check_response(operation.definition, exchange));
            }
            violations
        })
    }

    fn check_request(&self, operation: &Value, exchange: &Exchange) -> Vec<String> {
        let is_form = exchange.recorded.method == "POST";
        let (encoded, schema) = if is_form {
            let schema = &operation["requestBody"]["content"][FORM]["schema"];
            (&exchange.request[..], schema.clone())
        } else {
            (exchange.query.as_bytes(), query_schema(operation))
        };
        let kind = exchange.request_type.as_deref().unwrap_or_default();
        let mut violations = Vec::new();
        if !encoded.is_empty() && is_form && !kind.starts_with(FORM) {
            violations.push(format!("request: it is no form but {kind:?}"));
        }
        match Params::decode(encoded) {
            Ok(params) => violations.extend(form::check(self.0.schemas(), &schema, &params)),
            Err(refusal) => violations.push(format!("request: {}", refusal.body())),
        }
        violations
    }

    fn check_response(&self, operation: &Value, exchange: &Exchange) -> Vec<String> {
        let status = exchange.recorded.status.unwrap_or_default().to_string();
        let responses = &operation["responses"];
        let response = responses.get(&status).unwrap_or(&responses["default"]);
        self.0
            .schemas()
            .check_response(response, &exchange.response_type, &exchange.response)
    }
}

/// Returns the schema of all query parameters of an operation.
fn query_schema(operation: &Value) -> Value {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let query: Vec<_> = parameters.filter(|own| own["in"] == "query").collect();
    let name = |own: &&&Value| own["name"].as_str().unwrap_or_default().to_owned();
    let properties = query.iter().map(|own| (name(&own), own["schema"].clone()));
    let properties: serde_json::Map<_, _> = properties.collect();
    let required = query.iter().filter(|own| own["required"] == true);
    let required: Vec<_> = required.map(|own| own["name"].clone()).collect();
    json!({"type": "object", "properties": properties, "required": required})
}
