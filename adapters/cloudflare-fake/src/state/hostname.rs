//! A custom hostname.

use serde_json::{Map, Value, json};

/// The successive states of a hostname and of its certificate.
const STATES: [(&str, &str); 5] = [
    ("pending", "initializing"),
    ("pending", "pending_validation"),
    ("active", "pending_issuance"),
    ("active", "pending_deployment"),
    ("active", "active"),
];

/// A custom hostname with its states.
pub(crate) struct Hostname {
    pub(crate) id: String,
    pub(crate) hostname: String,
    pub(crate) ssl_id: String,
    pub(crate) ssl: Map<String, Value>,
    /// The given fields, such as `custom_metadata`, unchanged.
    pub(crate) fields: Map<String, Value>,
    pub(crate) created: String,
    pub(crate) step: usize,
    /// The fixed states; `None` if the states advance.
    pub(crate) pinned: Option<(String, String)>,
}

impl Hostname {
    pub(crate) fn states(&self) -> (&str, &str) {
        match &self.pinned {
            Some((status, ssl)) => (status, ssl),
            None => STATES[self.step.min(STATES.len() - 1)],
        }
    }

    pub(crate) fn view(&self) -> Value {
        let (status, ssl_status) = self.states();
        let (name, challenge) = (&self.hostname, &self.ssl_id);
        let mut ssl = self.ssl.clone();
        ssl.extend([
            ("id".to_owned(), json!(self.ssl_id)),
            ("status".to_owned(), json!(ssl_status)),
            ("validation_errors".to_owned(), json!([])),
        ]);
        if ssl_status == "pending_validation" {
            let record = if self.ssl.get("method").is_some_and(|method| method == "txt") {
                json!({"txt_name": format!("_acme-challenge.{name}"), "txt_value": challenge})
            } else {
                json!({"http_url": format!("http://{name}/.well-known/acme-challenge/{challenge}"), "http_body": challenge})
            };
            ssl.insert("validation_records".to_owned(), json!([record]));
        }
        let mut view = self.fields.clone();
        view.extend([
            ("id".to_owned(), json!(self.id)),
            ("hostname".to_owned(), json!(name)),
            ("created_at".to_owned(), json!(self.created)),
            ("status".to_owned(), json!(status)),
            ("ssl".to_owned(), Value::Object(ssl)),
            ("verification_errors".to_owned(), json!([])),
        ]);
        if status == "pending" {
            let verification = json!({"type": "txt", "name": format!("_cf-custom-hostname.{name}"), "value": self.id});
            let url = format!(
                "http://{name}/.well-known/cf-custom-hostname-challenge/{}",
                self.id
            );
            view.insert("ownership_verification".to_owned(), verification);
            view.insert(
                "ownership_verification_http".to_owned(),
                json!({"http_url": url, "http_body": self.id}),
            );
        }
        Value::Object(view)
    }
}
