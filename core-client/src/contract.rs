//! Compares the operations of the client with the OpenAPI documents of the server.
//!
//! A request body has only documented fields, and has all required ones. A response may have any documented
//! fields; the client must accept every documented value of the fields that it reads.

use std::any::type_name;
use std::collections::BTreeSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::operation::{
    ArchiveBody, EventsReply, FormBody, JsonBody, JsonReply, NoBody, Operation, Service,
};
use crate::operations::all;

/// The schema of a body, with the schemas that it refers to in `$defs`.
fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaGenerator::default();
    generator.into_root_schema_for::<T>().to_value()
}

/// A content type with the schema of its JSON. `null` stands for content without a schema.
type MediaSchema = (&'static str, Value);

/// The request body of an operation.
trait RequestBody {
    fn media() -> Option<MediaSchema>;
}

impl RequestBody for NoBody {
    fn media() -> Option<MediaSchema> {
        None
    }
}

impl RequestBody for ArchiveBody {
    fn media() -> Option<MediaSchema> {
        Some(("application/gzip", Value::Null))
    }
}

impl<T: JsonSchema> RequestBody for JsonBody<T> {
    fn media() -> Option<MediaSchema> {
        Some(("application/json", schema_of::<T>()))
    }
}

impl<T: JsonSchema> RequestBody for FormBody<T> {
    fn media() -> Option<MediaSchema> {
        Some(("application/x-www-form-urlencoded", schema_of::<T>()))
    }
}

/// The response of an operation.
trait Reply {
    fn media() -> MediaSchema;
}

impl<T: JsonSchema> Reply for JsonReply<T> {
    fn media() -> MediaSchema {
        ("application/json", schema_of::<T>())
    }
}

impl<T> Reply for EventsReply<T> {
    fn media() -> MediaSchema {
        ("text/event-stream", Value::Null)
    }
}

/// An operation with the schemas of its types.
pub(crate) struct ClientOperation {
    name: &'static str,
    service: Service,
    method: String,
    path: &'static str,
    query: &'static [&'static str],
    headers: &'static [&'static str],
    request: Option<MediaSchema>,
    response: MediaSchema,
    types: &'static str,
}

impl ClientOperation {
    #[expect(private_bounds, reason = "the macro of the table calls it")]
    pub(crate) fn of<B: RequestBody, R: Reply>(operation: &Operation<B, R>) -> Self {
        Self {
            name: operation.name,
            service: operation.service,
            method: operation.method.as_str().to_lowercase(),
            path: operation.path,
            query: operation.query,
            headers: operation.headers,
            request: B::media(),
            response: R::media(),
            types: type_name::<(B, R)>(),
        }
    }

    /// Returns the differences between the client and the document.
    fn differences(&self, document: &Value) -> Vec<String> {
        let operation = &document["paths"][self.path][&self.method];
        if operation.is_null() {
            return vec![format!("{} {} is not documented", self.method, self.path)];
        }
        let mut found = Vec::new();
        self.compare_parameters(operation, document, &mut found);
        self.compare_request(operation, document, &mut found);
        self.compare_responses(operation, document, &mut found);
        found
    }

    fn compare_parameters(&self, operation: &Value, document: &Value, found: &mut Vec<String>) {
        let parameters = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let parameters = parameters
            .iter()
            .map(|parameter| resolve(parameter, document));
        let (mut documented, mut required) = (BTreeSet::new(), BTreeSet::new());
        for parameter in parameters {
            let place = parameter["in"].as_str().unwrap().to_owned();
            let key = (place, parameter["name"].as_str().unwrap().to_lowercase());
            if parameter["required"] == true && key.0 != "path" {
                required.insert(key.clone());
            }
            documented.insert(key);
        }
        let names = |place: &str, names: &[&str]| -> Vec<_> {
            let names = names
                .iter()
                .map(|name| (place.to_owned(), name.to_lowercase()));
            names.collect()
        };
        let sent = [names("query", self.query), names("header", self.headers)].concat();
        for key in &sent {
            if !documented.contains(key) {
                found.push(format!(
                    "the {} parameter {} is not documented",
                    key.0, key.1
                ));
            }
        }
        found.extend(
            required
                .iter()
                .filter(|key| !sent.contains(key))
                .map(|key| format!("the {} parameter {} is required", key.0, key.1)),
        );
    }

    fn compare_request(&self, operation: &Value, document: &Value, found: &mut Vec<String>) {
        let body = &operation["requestBody"];
        let Some((media, ours)) = &self.request else {
            if body["required"] == true {
                found.push("a request body is required".to_owned());
            }
            return;
        };
        let content = &body["content"][media];
        if content.is_null() {
            found.push(format!("the request body {media} is not documented"));
        } else if !ours.is_null() {
            let (ours, theirs) = (Place::root(ours), Place::new(&content["schema"], document));
            found.extend(accepts(theirs, ours, "request", Direction::Request));
        }
    }

    fn compare_responses(&self, operation: &Value, document: &Value, found: &mut Vec<String>) {
        let (media, ours) = &self.response;
        let mut compared = 0;
        for (status, response) in operation["responses"].as_object().unwrap() {
            let content = &response["content"][media];
            if !status.starts_with('2') || content.is_null() {
                continue;
            }
            compared += 1;
            if !ours.is_null() {
                let (ours, theirs) = (Place::root(ours), Place::new(&content["schema"], document));
                found.extend(accepts(ours, theirs, "response", Direction::Response));
            }
        }
        if compared == 0 {
            found.push(format!("no response has {media}"));
        }
    }
}

/// A schema and the document that its references point into.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: &'a Value,
    document: &'a Value,
}

impl<'a> Place<'a> {
    fn root(schema: &'a Value) -> Self {
        Self::new(schema, schema)
    }

    fn new(schema: &'a Value, document: &'a Value) -> Self {
        let schema = resolve(schema, document);
        Self { schema, document }
    }

    fn child(self, schema: &'a Value) -> Self {
        Self::new(schema, self.document)
    }

    /// Returns the alternatives of a schema: those of `anyOf` and `oneOf`, or itself.
    fn alternatives(self) -> Vec<Self> {
        let list = ["anyOf", "oneOf"]
            .iter()
            .find_map(|key| self.schema[key].as_array());
        match list {
            Some(list) => list
                .iter()
                .flat_map(|schema| self.child(schema).alternatives())
                .collect(),
            None => vec![self],
        }
    }

    /// Returns the JSON types that the schema allows. A schema without a type allows all.
    fn types(self) -> Vec<&'a str> {
        let listed = match &self.schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let values = self.schema["enum"].as_array();
        match self
            .schema
            .get("const")
            .or(values.and_then(|values| values.first()))
        {
            Some(Value::String(_)) if listed.is_empty() => vec!["string"],
            Some(Value::Bool(_)) if listed.is_empty() => vec!["boolean"],
            _ => listed,
        }
    }

    fn is_anything(self) -> bool {
        let has_rules = |schema: &serde_json::Map<String, Value>| {
            let rules = ["type", "enum", "const", "properties", "anyOf", "oneOf"];
            rules.iter().any(|rule| schema.contains_key(*rule))
        };
        !self.schema.as_object().is_some_and(has_rules)
    }

    fn allows_null(self) -> bool {
        self.is_anything()
            || self
                .alternatives()
                .iter()
                .any(|place| place.types().contains(&"null"))
    }

    fn requires(self, property: &str) -> bool {
        let required = self.schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|name| name == property))
    }

    /// Returns the texts that the schema allows; `None` if it allows any.
    fn texts(self) -> Option<BTreeSet<&'a str>> {
        if self.schema["x-open"] == true {
            return None;
        }
        if let Some(text) = self.schema["const"].as_str() {
            return Some(BTreeSet::from([text]));
        }
        let values = self.schema["enum"].as_array()?;
        Some(values.iter().filter_map(Value::as_str).collect())
    }
}

fn resolve<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    match schema["$ref"]
        .as_str()
        .and_then(|target| target.strip_prefix('#'))
    {
        Some(pointer) => resolve(document.pointer(pointer).unwrap(), document),
        None => schema,
    }
}

/// The side that sends the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Response,
}

/// Returns the reasons why a reader does not accept all values of a writer; empty if it does.
fn accepts(reader: Place<'_>, writer: Place<'_>, path: &str, direction: Direction) -> Vec<String> {
    if reader.is_anything() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for written in writer.alternatives() {
        let attempts = reader.alternatives().into_iter();
        let mut attempts = attempts.map(|read| accepts_one(read, written, path, direction));
        // The problems of the best alternative tell most.
        let best = attempts.by_ref().min_by_key(Vec::len).unwrap_or_default();
        found.extend(best);
    }
    found
}

fn accepts_one(
    reader: Place<'_>,
    writer: Place<'_>,
    path: &str,
    direction: Direction,
) -> Vec<String> {
    if reader.is_anything() {
        return Vec::new();
    }
    let (read, mut written) = (reader.types(), writer.types());
    // The client never sends `null`: absent values are left out.
    if direction == Direction::Request {
        written.retain(|kind| *kind != "null");
    }
    if written.is_empty() && writer.is_anything() {
        return vec![format!("{path}: any value, read as {read:?}")];
    }
    let fits =
        |kind: &&str| read.contains(kind) || (*kind == "integer" && read.contains(&"number"));
    if !written.iter().all(fits) {
        return vec![format!("{path}: {written:?}, read as {read:?}")];
    }
    let mut found = Vec::new();
    if let Some(allowed) = reader.texts()
        && read.contains(&"string")
    {
        match writer.texts() {
            Some(texts) => found.extend(
                texts
                    .difference(&allowed)
                    .map(|text| format!("{path}: the value {text:?} is unknown")),
            ),
            None if written.contains(&"string") && !is_constant(writer) => {
                found.push(format!("{path}: any text, read as {allowed:?}"));
            }
            None => {}
        }
    }
    if written.contains(&"array") {
        let items = (
            reader.child(&reader.schema["items"]),
            writer.child(&writer.schema["items"]),
        );
        found.extend(accepts(items.0, items.1, &format!("{path}[]"), direction));
    }
    if written.contains(&"object") {
        found.extend(accepts_object(reader, writer, path, direction));
    }
    found
}

/// Returns whether the client writes the texts of an open enumeration, whose named variants the server documents.
fn is_constant(writer: Place<'_>) -> bool {
    writer.schema["x-open"] == true
}

fn accepts_object(
    reader: Place<'_>,
    writer: Place<'_>,
    path: &str,
    direction: Direction,
) -> Vec<String> {
    let properties = |place: Place<'_>| {
        place.schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    let (read, written) = (properties(reader), properties(writer));
    let mut found = Vec::new();
    // The client names the fields: as a reader those that it needs, as a writer those that it sends.
    let ours = if direction == Direction::Response {
        &read
    } else {
        &written
    };
    for name in ours.keys() {
        let path = format!("{path}.{name}");
        let (Some(read), Some(written)) = (
            reader.schema["properties"].get(name),
            writer.schema["properties"].get(name),
        ) else {
            found.push(format!("{path} is not documented"));
            continue;
        };
        let (read, written) = (reader.child(read), writer.child(written));
        if reader.requires(name) && !writer.requires(name) {
            found.push(format!("{path} can be absent"));
        }
        if direction == Direction::Response && written.allows_null() && !read.allows_null() {
            found.push(format!("{path} can be null"));
            continue;
        }
        found.extend(accepts(read, written, &path, direction));
    }
    for name in read
        .keys()
        .filter(|name| direction == Direction::Request && reader.requires(name))
    {
        if !writer.requires(name) {
            found.push(format!("{path}.{name} is required and not always sent"));
        }
    }
    let further = |place: Place<'_>| place.schema["additionalProperties"].is_object();
    if further(reader) && further(writer) {
        let (read, written) = (
            &reader.schema["additionalProperties"],
            &writer.schema["additionalProperties"],
        );
        found.extend(accepts(
            reader.child(read),
            writer.child(written),
            &format!("{path}.*"),
            direction,
        ));
    }
    found
}

/// Returns the OpenAPI document of a service.
fn document(service: Service) -> Value {
    let name = match service {
        Service::Iam => "iam",
        Service::Registry => "registry",
        Service::Provisioning => "provisioning",
        Service::Stacks => "stacks",
        Service::Cli => "cli",
    };
    let path = format!(
        "{}/../core-http/openapi/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_operation_matches_its_openapi_document() {
    let mut found = Vec::new();
    for operation in all() {
        let differences = operation.differences(&document(operation.service));
        let place = |difference| format!("{} {}: {difference}", operation.name, operation.types);
        found.extend(differences.into_iter().map(place));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let operations = all();
    let names: BTreeSet<_> = operations.iter().map(|operation| operation.name).collect();
    assert_eq!(names.len(), operations.len());
}

/// Returns the problems of a reader with the values of a writer.
fn problems(reader: &Value, writer: &Value, direction: Direction) -> usize {
    accepts(Place::root(reader), Place::root(writer), "x", direction).len()
}

#[test]
fn the_comparison_finds_wrong_types_missing_fields_and_unknown_values() {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let text = object(json!({ "a": { "type": "string" } }), json!(["a"]));
    let number = object(json!({ "a": { "type": "integer" } }), json!(["a"]));
    let nullable = object(json!({ "a": { "type": ["string", "null"] } }), json!(["a"]));
    let optional = object(json!({ "a": { "type": "string" } }), json!([]));
    let other = object(json!({ "b": { "type": "string" } }), json!(["b"]));
    let one = json!({ "type": "string", "enum": ["x"] });
    let two = json!({ "type": "string", "enum": ["x", "y"] });
    let open = json!({ "type": "string", "enum": ["x"], "x-open": true });
    for (reader, writer, direction, expected) in [
        (&text, &text, Direction::Response, 0),
        (&text, &number, Direction::Response, 1),
        (&text, &nullable, Direction::Response, 1),
        (&nullable, &text, Direction::Response, 0),
        (&text, &optional, Direction::Response, 1),
        (&text, &other, Direction::Response, 1),
        (&text, &optional, Direction::Request, 2),
        (&optional, &other, Direction::Request, 1),
        (&optional, &text, Direction::Request, 0),
        (&one, &two, Direction::Response, 1),
        (&two, &one, Direction::Response, 0),
        (&open, &two, Direction::Response, 0),
    ] {
        assert_eq!(
            problems(reader, writer, direction),
            expected,
            "{reader} {writer}"
        );
    }
}

#[test]
fn an_undocumented_operation_is_found() {
    let operations = all();
    let operation = operations
        .iter()
        .find(|operation| operation.name == "get_job")
        .unwrap();
    assert_eq!(operation.differences(&json!({ "paths": {} })).len(), 1);
}
