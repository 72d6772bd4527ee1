//! A zone.

use serde_json::{Value, json};

use super::dns::Record;
use super::hostname::Hostname;
use super::route::Route;

/// A DNS zone with its records, routes and hostnames.
pub(crate) struct Zone {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) created: String,
    pub(crate) records: Vec<Record>,
    pub(crate) routes: Vec<Route>,
    pub(crate) hostnames: Vec<Hostname>,
}

impl Zone {
    pub(crate) fn new(id: String, created: String, name: &str, status: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            status: status.to_owned(),
            created,
            records: Vec::new(),
            routes: Vec::new(),
            hostnames: Vec::new(),
        }
    }

    /// Returns whether a name is the zone or below it.
    pub(crate) fn contains(&self, name: &str) -> bool {
        let above = name.strip_suffix(self.name.as_str());
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }

    pub(crate) fn view(&self, account: &str) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "type": "full",
            "paused": false,
            "account": {"id": account, "name": "Fake account"},
            "created_on": self.created,
            "modified_on": self.created,
            "activated_on": if self.status == "active" { json!(self.created) } else { Value::Null },
            "development_mode": 0,
            "meta": {},
            "name_servers": ["ada.ns.cloudflare.com", "bob.ns.cloudflare.com"],
            "original_dnshost": null,
            "original_name_servers": null,
            "original_registrar": null,
            "owner": {"id": account, "type": "user"},
            "plan": {"name": "Enterprise Website", "legacy_id": "enterprise"},
        })
    }
}
