//! A custom domain of a worker.

use serde_json::{Value, json};

/// A custom domain of a script.
pub(crate) struct Domain {
    pub(crate) id: String,
    pub(crate) cert_id: String,
    pub(crate) hostname: String,
    pub(crate) service: String,
    pub(crate) environment: String,
    pub(crate) zone_id: String,
    pub(crate) zone_name: String,
    pub(crate) record_id: String,
}

impl Domain {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        match name {
            "hostname" => Some(&self.hostname),
            "service" => Some(&self.service),
            "environment" => Some(&self.environment),
            "zone_id" => Some(&self.zone_id),
            "zone_name" => Some(&self.zone_name),
            _ => None,
        }
    }

    pub(crate) fn view(&self) -> Value {
        json!({
            "id": self.id,
            "cert_id": self.cert_id,
            "hostname": self.hostname,
            "service": self.service,
            "environment": self.environment,
            "zone_id": self.zone_id,
            "zone_name": self.zone_name,
        })
    }
}
