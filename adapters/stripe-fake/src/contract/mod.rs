//! Validation of an exchange against Stripe's OpenAPI document: query and form of the request, status and body of the
//! response.

mod form;
mod schema;

use std::path::Path;
use std::{fs, io};

use serde_json::{Value, json};

use self::schema::Schemas;
use crate::journal::Exchange;
use crate::params::Params;

/// The parsed OpenAPI document.
pub struct Contract {
    paths: Value,
    schemas: Schemas,
}

/// The result of checking an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The operation, for example `GET /v1/invoices/{id}`; `None` if the document has none.
    pub operation: Option<String>,
    /// The violations of the document.
    pub violations: Vec<String>,
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Contract").finish_non_exhaustive()
    }
}

const METHODS: [&str; 3] = ["get", "post", "delete"];

/// The content type of requests.
const FORM: &str = "application/x-www-form-urlencoded";

impl Contract {
    /// Reads the document.
    ///
    /// # Errors
    /// [`io::Error`] if the file does not exist or is not valid JSON.
    pub fn read(file: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(file)?;
        Ok(Self::new(&serde_json::from_str(&text)?))
    }

    /// Creates a contract from an OpenAPI 3.0 document.
    #[must_use]
    pub fn new(document: &Value) -> Self {
        Self {
            paths: document["paths"].clone(),
            schemas: Schemas::new(&document["components"]["schemas"]),
        }
    }

    /// Returns all operations in the form that findings use.
    #[must_use]
    pub fn operations(&self) -> Vec<String> {
        let paths = self.paths.as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, item)| {
            let methods = METHODS.iter().filter(|method| item.get(method).is_some());
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        });
        operations.collect()
    }

    /// Checks an exchange. The request is not checked if it was refused, and the response is not checked if a fault
    /// caused it.
    #[must_use]
    pub fn check(&self, exchange: &Exchange) -> Finding {
        let recorded = &exchange.recorded;
        let method = recorded.method.to_lowercase();
        let Some((path, operation)) = self.find(&method, &recorded.path) else {
            return Finding {
                operation: None,
                violations: Vec::new(),
            };
        };
        let is_refused = recorded.status.is_some_and(|status| status >= 400);
        let mut violations = Vec::new();
        if !is_refused || exchange.is_fault {
            violations.extend(self.check_request(operation, exchange));
        }
        if !exchange.is_fault {
            violations.extend(self.check_response(operation, exchange));
        }
        Finding {
            operation: Some(format!("{} {path}", recorded.method)),
            violations,
        }
    }

    /// Returns the operation of a path.
    fn find(&self, method: &str, path: &str) -> Option<(&str, &Value)> {
        let mut paths = self.paths.as_object()?.iter();
        let (template, item) = paths.find(|(template, item)| {
            item.get(method).is_some() && matches_template(template, path)
        })?;
        Some((template.as_str(), &item[method]))
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
            Ok(params) => violations.extend(form::check(&self.schemas, &schema, &params)),
            Err(refusal) => violations.push(format!("request: {}", refusal.body())),
        }
        violations
    }

    fn check_response(&self, operation: &Value, exchange: &Exchange) -> Vec<String> {
        let status = exchange.recorded.status.unwrap_or_default().to_string();
        let responses = &operation["responses"];
        let response = responses.get(&status).unwrap_or(&responses["default"]);
        let kind = exchange.response_type.split(';').next().unwrap_or_default();
        match response["content"].get(kind) {
            None => vec![format!("response: content type {kind:?} is not documented")],
            Some(content) => match serde_json::from_slice(&exchange.response) {
                Ok(body) => self.schemas.check(&content["schema"], &body, "response"),
                Err(error) => vec![format!("response: it is no JSON: {error}")],
            },
        }
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

fn matches_template(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    let mut pairs = template.iter().zip(&path);
    template.len() == path.len()
        && pairs.all(|(own, segment)| own.starts_with('{') || own == segment)
}
