//! The schema of every request limits the size of every value.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::fixture::{Case, description, for_each_endpoint};
use crate::world::World;

/// Formats that limit the length of a text by their definition.
const BOUNDED_FORMATS: [&str; 4] = ["date-time", "email", "idn-hostname", "uuid"];

/// Collects the values without a size limit in a schema and in the schemas that it refers to.
struct UnboundedValueVisitor<'d> {
    document: &'d Value,
    found: BTreeSet<String>,
    /// The references that are being visited, so that a recursive type is visited once.
    open: Vec<&'d str>,
}

impl<'d> UnboundedValueVisitor<'d> {
    fn visit(&mut self, schema: &'d Value, at: &str) {
        match schema {
            Value::Bool(false) => {}
            Value::Object(keywords) if !keywords.is_empty() => self.visit_keywords(keywords, at),
            _ => self.report(at, "is of any type and size"),
        }
    }

    fn visit_keywords(&mut self, schema: &'d Map<String, Value>, at: &str) {
        let has = |keyword: &str| schema.contains_key(keyword);
        if has("x-maxBytes") || has("const") || has("enum") {
            return;
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            if !self.open.contains(&target) {
                self.open.push(target);
                let pointer = target.trim_start_matches('#');
                self.visit(self.document.pointer(pointer).unwrap(), at);
                self.open.pop();
            }
            return;
        }
        let choices = ["anyOf", "oneOf", "allOf"].into_iter();
        let choices = choices
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten();
        let mut is_choice = false;
        for branch in choices {
            is_choice = true;
            self.visit(branch, at);
        }
        let types = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(one)) => vec![one.as_str()],
            _ if is_choice => vec![],
            _ => return self.report(at, "is of any type and size"),
        };
        for kind in types {
            match kind {
                "string" => self.visit_text(schema, at),
                "array" => self.visit_list(schema, at),
                "object" => self.visit_object(schema, at),
                _ => {}
            }
        }
    }

    fn visit_text(&mut self, schema: &'d Map<String, Value>, at: &str) {
        let format = schema
            .get("format")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !schema.contains_key("maxLength") && !BOUNDED_FORMATS.contains(&format) {
            self.report(at, "is text of any length");
        }
    }

    fn visit_list(&mut self, schema: &'d Map<String, Value>, at: &str) {
        if !schema.contains_key("maxItems") {
            self.report(at, "is a list of any length");
        }
        let items = schema.get("items").unwrap_or(&Value::Bool(true));
        self.visit(items, &format!("{at}[]"));
    }

    fn visit_object(&mut self, schema: &'d Map<String, Value>, at: &str) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            self.visit(property, &format!("{at}.{name}"));
        }
        // Undeclared fields are ignored, unless the schema declares no fields at all.
        let others = schema.get("additionalProperties");
        let Some(others) = others.filter(|others| **others != false) else {
            if properties.is_none() {
                self.report(at, "is an object of any size");
            }
            return;
        };
        if !schema.contains_key("maxProperties") {
            self.report(at, "has any number of fields");
        }
        self.visit(others, &format!("{at}.*"));
    }

    fn report(&mut self, at: &str, problem: &str) {
        self.found.insert(format!("{at} {problem}"));
    }
}

/// Returns the values without a size limit in the queries and bodies of an OpenAPI document. Bodies that are neither
/// JSON nor forms have the body limit of their route.
fn find_unbounded_values(document: &Value) -> BTreeSet<String> {
    let mut found = UnboundedValueVisitor {
        document,
        found: BTreeSet::new(),
        open: Vec::new(),
    };
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let contents = operation["requestBody"]["content"].as_object();
            for (content_type, content) in contents.into_iter().flatten() {
                if content_type.ends_with("json") || content_type.ends_with("urlencoded") {
                    found.visit(&content["schema"], &format!("{method} {path} body"));
                }
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                if parameter["in"] == "query" {
                    let name = parameter["name"].as_str().unwrap();
                    found.visit(&parameter["schema"], &format!("{method} {path} ?{name}"));
                }
            }
        }
    }
    found.found
}

#[test]
fn every_value_of_a_request_has_a_size_limit_in_its_schema() {
    let world = World::new();
    let mut documents = 0;
    for service in world.services() {
        let document = description(service);
        let found = find_unbounded_values(&document);
        assert!(found.is_empty(), "{found:#?}");
        documents += 1;
    }
    assert_eq!(documents, 6);
}

#[test]
fn a_value_without_a_size_limit_is_found_at_any_depth() {
    let text = json!({ "type": "string" });
    let of = |schema: Value| {
        let document = json!({
            "paths": { "/a": { "post": { "requestBody": { "content": { "application/json": { "schema": schema } } } } } },
            "components": { "schemas": { "Node": { "type": "object", "properties": {
                "next": { "$ref": "#/components/schemas/Node" }, "text": { "type": "string" } } } } },
        });
        find_unbounded_values(&document).len()
    };
    for bad in [
        text.clone(),
        json!(true),
        json!({}),
        json!({ "description": "anything" }),
        json!({ "type": "object" }),
        json!({ "type": ["string", "null"] }),
        json!({ "type": "string", "format": "uri" }),
        json!({ "type": "array", "items": { "type": "integer" } }),
        json!({ "type": "array", "maxItems": 3, "items": text }),
        json!({ "type": "array", "maxItems": 3 }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        json!({ "type": "object", "maxProperties": 3, "additionalProperties": true }),
        json!({ "type": "object", "properties": { "a": { "anyOf": [{ "type": "null" }, text] } } }),
        json!({ "$ref": "#/components/schemas/Node" }),
    ] {
        assert_eq!(of(bad.clone()), 1, "{bad}");
    }
    for good in [
        json!({ "type": "string", "maxLength": 3 }),
        json!({ "type": "string", "format": "uuid" }),
        json!({ "x-maxBytes": 3 }),
        json!({ "type": "array", "maxItems": 3, "items": { "enum": ["a"] } }),
        json!({ "type": "object", "properties": {} }),
        json!(false),
    ] {
        assert_eq!(of(good.clone()), 0, "{good}");
    }
}

/// Returns the query parameters of an endpoint that have a largest number, with this number.
fn largest_numbers(case: &Case) -> Vec<(String, u128)> {
    let document = description(&case.service);
    let operation = case.operation();
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let resolved = parameters.map(|parameter| match parameter["$ref"].as_str() {
        Some(target) => document.pointer(target.trim_start_matches('#')).unwrap(),
        None => parameter,
    });
    let in_query = resolved.filter(|parameter| parameter["in"] == "query");
    let numbers = in_query.filter_map(|parameter| {
        let most = parameter["schema"]["maximum"].as_u64()?;
        Some((parameter["name"].as_str()?.to_owned(), u128::from(most)))
    });
    numbers.collect()
}

#[tokio::test]
async fn numbers_above_the_largest_one_of_a_query_parameter_are_refused() {
    let checked = for_each_endpoint(async |case: &Case| {
        let numbers = largest_numbers(case);
        for (name, most) in &numbers {
            for number in [most + 1, u128::MAX] {
                let ask = case.valid_request().with_query(&format!("{name}={number}"));
                let refused = case.send(&case.lowest_caller(), &ask).await;
                let issues = refused.expect_error(400, "VALIDATION_ERROR").issues();
                let expected = format!("{name}: too_big");
                assert!(issues.contains(&expected), "{}: {issues:?}", case.name());
            }
        }
        !numbers.is_empty()
    })
    .await;
    assert!(checked > 5, "{checked}");
}
