//! A worker route.

use serde_json::{Value, json};

/// A route from a pattern to a script.
pub(crate) struct Route {
    pub(crate) id: String,
    pub(crate) pattern: String,
    pub(crate) script: Option<String>,
}

impl Route {
    pub(crate) fn view(&self) -> Value {
        let mut view = json!({"id": self.id, "pattern": self.pattern});
        if let Some(script) = &self.script {
            view["script"] = json!(script);
        }
        view
    }
}
