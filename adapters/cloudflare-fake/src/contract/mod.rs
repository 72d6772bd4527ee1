//! Validation of an exchange against Cloudflare's OpenAPI document: path, query and body of the request, status and
//! body of the response.

mod body;
mod schema;

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::{Value, json};

use self::schema::Schemas;
use crate::journal::Exchange;

/// The parsed OpenAPI document.
pub struct Contract {
    paths: Value,
    schemas: Schemas,
    responses: Value,
}

/// The result of checking an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The operation, for example `GET /zones/{zone_id}`; `None` if the document has none.
    pub operation: Option<String>,
    /// The violations of the document.
    pub violations: Vec<String>,
}

impl std::fmt::Debug for Contract {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Contract").finish_non_exhaustive()
    }
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

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
        let components = &document["components"];
        Self {
            paths: document["paths"].clone(),
            schemas: Schemas::new(&components["schemas"]),
            responses: components["responses"].clone(),
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

    /// Checks an exchange. The response is not checked if a fault caused it.
    #[must_use]
    pub fn check(&self, exchange: &Exchange) -> Finding {
        let method = exchange.recorded.method.to_lowercase();
        let Some((path, operation)) = self.find(&method, &exchange.recorded.path) else {
            return Finding {
                operation: None,
                violations: Vec::new(),
            };
        };
        let mut violations = self.check_parameters(operation, path, exchange);
        violations.extend(self.check_request(operation, exchange));
        if !exchange.is_fault {
            violations.extend(self.check_response(operation, exchange));
        }
        Finding {
            operation: Some(format!("{} {path}", exchange.recorded.method)),
            violations,
        }
    }

    /// Returns the operation of a path. A literal segment wins over a parameter.
    fn find(&self, method: &str, path: &str) -> Option<(&str, &Value)> {
        let paths = self.paths.as_object()?.iter();
        let candidates = paths.filter_map(|(template, item)| {
            let parameters = match_path(template, path)?;
            Some((parameters.len(), template.as_str(), item.get(method)?))
        });
        let nearest = candidates.min_by_key(|(parameters, ..)| *parameters)?;
        Some((nearest.1, nearest.2))
    }

    fn check_parameters(
        &self,
        operation: &Value,
        template: &str,
        exchange: &Exchange,
    ) -> Vec<String> {
        let documented: Vec<_> = operation["parameters"]
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
        for (name, value) in match_path(template, &exchange.recorded.path)
            .into_iter()
            .flatten()
        {
            if let Some(parameter) = named("path", name) {
                violations.extend(self.check_text(&parameter["schema"], name, value));
            }
        }
        for (name, value) in &exchange.query {
            let (base, member) = name.split_once('.').unwrap_or((name, ""));
            match named("query", base) {
                None => violations.push(format!("query {name}: there is no such parameter")),
                Some(parameter) => {
                    let schema = self.schemas.resolve(&parameter["schema"]);
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
        let read = match self.schemas.resolve(schema)["type"].as_str() {
            Some("number" | "integer" | "boolean") => {
                serde_json::from_str(text).unwrap_or_else(|_| json!(text))
            }
            Some("array") => text.split(',').collect(),
            _ => json!(text),
        };
        self.schemas.check(schema, &read, name)
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
                    body::check_form(&self.schemas, &form["schema"], kind, &exchange.request)
                }
                None => vec!["request: the operation takes no form".to_owned()],
            };
        }
        match content.get("application/json") {
            Some(json) => {
                body::check_json(&self.schemas, &json["schema"], &exchange.request, "request")
            }
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
            None => &self.responses["bad_request"],
            Some(response) => match response["$ref"].as_str() {
                Some(reference) => {
                    &self.responses[reference.rsplit('/').next().unwrap_or_default()]
                }
                None => response,
            },
        };
        let kind = exchange.response_type.split(';').next().unwrap_or_default();
        match response["content"].get(kind) {
            None => vec![format!("response: content type {kind:?} is not documented")],
            Some(content) if kind == "application/json" => body::check_json(
                &self.schemas,
                &content["schema"],
                &exchange.response,
                "response",
            ),
            Some(_) => Vec::new(),
        }
    }
}

/// Returns the parameters of a path if it matches the template.
fn match_path<'a>(template: &'a str, path: &'a str) -> Option<BTreeMap<&'a str, &'a str>> {
    let mut parameters = BTreeMap::new();
    let (template, path): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    if template.len() != path.len() {
        return None;
    }
    for (own, segment) in template.into_iter().zip(path) {
        match own.strip_prefix('{').and_then(|own| own.strip_suffix('}')) {
            Some(name) => drop(parameters.insert(name, segment)),
            None if own == segment => {}
            None => return None,
        }
    }
    Some(parameters)
}
