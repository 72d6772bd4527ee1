//! A D1 database.

use serde_json::{Value, json};

/// A D1 database without data.
pub(crate) struct Database {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) created_at: String,
    pub(crate) jurisdiction: Option<String>,
    pub(crate) replication: String,
}

impl Database {
    pub(crate) fn view(&self) -> Value {
        json!({
            "uuid": self.uuid,
            "name": self.name,
            "version": "production",
            "created_at": self.created_at,
            "jurisdiction": self.jurisdiction,
        })
    }

    pub(crate) fn details(&self) -> Value {
        let mut details = self.view();
        details["num_tables"] = json!(0);
        details["file_size"] = json!(12_288);
        details["read_replication"] = json!({"mode": self.replication});
        details
    }
}
