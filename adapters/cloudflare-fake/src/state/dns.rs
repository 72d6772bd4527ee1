//! A DNS record.

use serde_json::{Map, Value, json};

/// A DNS record: the given fields, and those that the API adds.
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) fields: Map<String, Value>,
    pub(crate) created: String,
    pub(crate) modified: String,
}

impl Record {
    /// Creates the placeholder record of a worker's domain. Only that domain creates and deletes it.
    pub(crate) fn of_worker(id: String, now: String, hostname: &str) -> Self {
        let fields = [
            ("name", json!(hostname)),
            ("type", json!("AAAA")),
            ("content", json!("100::")),
            ("ttl", json!(1)),
            ("proxied", json!(true)),
        ];
        let fields = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        Self::new(id, now, fields.collect())
    }

    pub(crate) fn new(id: String, now: String, fields: Map<String, Value>) -> Self {
        Self {
            id,
            fields,
            created: now.clone(),
            modified: now,
        }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        text(&self.fields, name)
    }

    pub(crate) fn name(&self) -> &str {
        self.text("name")
    }

    pub(crate) fn view(&self) -> Value {
        let mut view = self.fields.clone();
        view.extend([
            ("id".to_owned(), json!(self.id)),
            ("created_on".to_owned(), json!(self.created)),
            ("modified_on".to_owned(), json!(self.modified)),
            ("proxiable".to_owned(), json!(is_host(self.text("type")))),
            ("meta".to_owned(), json!({})),
            ("settings".to_owned(), json!({})),
        ]);
        Value::Object(view)
    }
}

pub(crate) fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_host(kind: &str) -> bool {
    matches!(kind, "A" | "AAAA" | "CNAME")
}
