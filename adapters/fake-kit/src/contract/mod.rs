//! Checks of exchanges against an OpenAPI document. Each fake decides which parts of an exchange it checks.

mod schema;

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde_json::Value;

pub use self::schema::{Formats, Schemas};

/// The parsed OpenAPI document.
#[derive(Debug)]
pub struct Document {
    paths: Value,
    responses: Value,
    schemas: Schemas,
}

/// The result of checking an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The operation, for example `GET /zones/{zone_id}`; `None` if the document has none.
    pub operation: Option<String>,
    /// The violations of the document.
    pub violations: Vec<String>,
}

/// The operation that the document describes for a request.
#[derive(Debug)]
pub struct Operation<'a> {
    /// The template of the path, for example `/zones/{zone_id}`.
    pub template: &'a str,
    /// The parameters of the path, by name.
    pub path: BTreeMap<&'a str, &'a str>,
    /// The description of the operation.
    pub definition: &'a Value,
}

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

impl Document {
    /// Reads the document.
    ///
    /// # Errors
    /// [`io::Error`] if the file does not exist or is not valid JSON.
    pub fn read(file: &Path, formats: Formats) -> io::Result<Self> {
        let text = fs::read_to_string(file)?;
        Ok(Self::new(&serde_json::from_str(&text)?, formats))
    }

    /// Takes the parts of an OpenAPI 3.0 document.
    #[must_use]
    pub fn new(document: &Value, formats: Formats) -> Self {
        let components = &document["components"];
        Self {
            paths: document["paths"].clone(),
            responses: components["responses"].clone(),
            schemas: Schemas::new(&components["schemas"], formats),
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

    /// Returns the schemas of the document.
    #[must_use]
    pub const fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// Returns a response that several operations share, by its name. `null` if there is none.
    #[must_use]
    pub fn response(&self, name: &str) -> &Value {
        &self.responses[name]
    }

    /// Checks a request with the function that returns the violations of its operation.
    pub fn check(
        &self,
        method: &str,
        path: &str,
        violations: impl FnOnce(&Operation<'_>) -> Vec<String>,
    ) -> Finding {
        match self.find(method, path) {
            None => Finding {
                operation: None,
                violations: Vec::new(),
            },
            Some(operation) => Finding {
                operation: Some(format!("{method} {}", operation.template)),
                violations: violations(&operation),
            },
        }
    }

    /// Returns the operation of a request. A literal segment wins over a parameter.
    fn find<'a>(&'a self, method: &str, path: &'a str) -> Option<Operation<'a>> {
        let method = method.to_lowercase();
        let paths = self.paths.as_object()?.iter();
        let candidates = paths.filter_map(|(template, item)| {
            Some(Operation {
                template,
                path: match_path(template, path)?,
                definition: item.get(&method)?,
            })
        });
        candidates.min_by_key(|operation| operation.path.len())
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn document(formats: Formats) -> Document {
        let content =
            json!({"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}});
        let operation = json!({"responses": {"200": {"content": content}}});
        let thing = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "nullable": true, "example": 7},
                "address": {"type": "string", "format": "ipv4"},
                "file": {"type": "string", "format": "binary"},
                "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
            },
            "required": ["name"],
        });
        let document = json!({
            "paths": {
                "/things/{id}": {"get": operation, "delete": operation},
                "/things/newest": {"get": operation},
            },
            "components": {"schemas": {"Thing": thing}},
        });
        Document::new(&document, formats)
    }

    fn violations(formats: Formats, body: &'static str) -> Vec<String> {
        let document = document(formats);
        let check = |operation: &Operation<'_>| {
            let response = &operation.definition["responses"]["200"];
            let body = Bytes::from_static(body.as_bytes());
            document
                .schemas()
                .check_response(response, "application/json; charset=utf-8", &body)
        };
        document.check("GET", "/things/1", check).violations
    }

    #[test]
    fn a_literal_segment_wins_over_a_parameter() {
        let document = document(Formats::Checked);
        let find = |method, path| document.check(method, path, |_| Vec::new()).operation;
        let newest = find("GET", "/things/newest");
        assert_eq!(newest.as_deref(), Some("GET /things/newest"));
        let deleted = find("DELETE", "/things/newest");
        assert_eq!(deleted.as_deref(), Some("DELETE /things/{id}"));
        assert_eq!(find("PUT", "/things/1"), None);
        assert_eq!(find("GET", "/things/1/parts"), None);
        let operations = document.operations();
        assert_eq!(operations.len(), 3, "{operations:?}");
    }

    #[test]
    fn nullable_and_referenced_schemas_are_checked_at_any_depth() {
        let check = |body| violations(Formats::Checked, body);
        assert!(check(r#"{"name": null, "parts": [{"name": "a"}]}"#).is_empty());
        assert_eq!(check(r#"{"name": null, "parts": [{"name": 5}]}"#).len(), 1);
        assert_eq!(check(r#"{"parts": [{}]}"#).len(), 2);
        assert_eq!(check("{").len(), 1);
    }

    #[test]
    fn formats_are_checked_only_if_the_document_means_them() {
        let body = r#"{"name": "a", "address": "1.2.3.400", "file": "x"}"#;
        assert_eq!(violations(Formats::Checked, body).len(), 1);
        assert!(violations(Formats::Ignored, body).is_empty());
    }

    #[test]
    fn an_undocumented_content_type_is_a_violation() {
        let document = document(Formats::Checked);
        let response = json!({"content": {"text/plain": {}}});
        let check = |kind| {
            let body = Bytes::from_static(b"{");
            document.schemas().check_response(&response, kind, &body)
        };
        assert!(check("text/plain").is_empty());
        assert_eq!(check("application/json").len(), 1);
    }
}
