//! A custom domain of a Pages project.

use serde_json::{Value, json};

const STATES: [&str; 3] = ["initializing", "pending", "active"];

/// A domain of a project with its state.
pub(crate) struct Domain {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) created: String,
    pub(crate) zone: String,
    pub(crate) step: usize,
}

impl Domain {
    pub(crate) fn is_active(&self) -> bool {
        self.step >= STATES.len() - 1
    }

    pub(crate) fn view(&self) -> Value {
        let status = STATES[self.step.min(STATES.len() - 1)];
        let verification = if status == "initializing" {
            "pending"
        } else {
            status
        };
        json!({
            "id": self.id,
            "domain_id": self.id,
            "name": self.name,
            "status": status,
            "certificate_authority": "google",
            "created_on": self.created,
            "validation_data": {"method": "http", "status": status},
            "verification_data": {"status": verification},
            "zone_tag": self.zone,
        })
    }
}
