//! What a comparison of registry and provider found.

use serde::{Deserialize, Serialize};

use crate::kernel::Environment;
use crate::registry::SslStatus;

/// How many names of a kind a report shows, and how many characters of them: a step may leave 64 KiB.
const MAX_NAMES: usize = 100;
const MAX_LENGTH: usize = 6 * 1024;

/// How many repairs one report tells of; who makes more goes on in another attempt.
pub(super) const MAX_REPAIRS: usize = 40;

/// What a step of a comparison found, and what it mended. Of a long repair it is what the last part of it found: the audit
/// has those before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// How many entries were compared.
    pub(super) checked: usize,
    /// How many differ, whether or not they are named.
    pub(super) counts: Counts,
    /// Entries whose objects are not there.
    pub(super) missing: Names,
    /// Objects that no entry tells of.
    pub(super) orphans: Names,
    /// Entries that tell of their objects what is not so.
    pub(super) changed: Names,
    /// What was mended.
    pub(super) repaired: Vec<Repair>,
}

/// How many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) missing: usize,
    pub(super) orphans: usize,
    pub(super) changed: usize,
    pub(super) repaired: usize,
}

/// The first names of many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Adds a name as long as there is room.
    fn push(&mut self, name: &str) {
        let length: usize = self.0.iter().map(String::len).sum();
        if self.0.len() < MAX_NAMES && length + name.len() <= MAX_LENGTH {
            self.0.push(name.to_owned());
        }
    }
}

impl Report {
    pub(super) fn add_missing(&mut self, name: &str) {
        self.counts.missing += 1;
        self.missing.push(name);
    }

    pub(super) fn add_orphan(&mut self, name: &str) {
        self.counts.orphans += 1;
        self.orphans.push(name);
    }

    pub(super) fn add_changed(&mut self, name: &str) {
        self.counts.changed += 1;
        self.changed.push(name);
    }

    pub(super) fn add_repair(&mut self, repair: Repair) {
        self.counts.repaired += 1;
        self.repaired.push(repair);
    }

    /// Whether there is no room for another repair.
    pub(super) const fn is_full(&self) -> bool {
        self.repaired.len() >= MAX_REPAIRS
    }
}

/// What was done about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Mended {
    /// The object was made again.
    Created,
    /// The entry tells of the object again what is so.
    Updated,
    /// The object was entered.
    Entered,
    /// The object was removed.
    Removed,
    /// The entry says that its object is lost.
    Failed,
}

/// A difference that was mended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Repair {
    /// The name of the object, or the hostname.
    pub(super) name: String,
    pub(super) action: Mended,
    /// The entry's id, if there is an entry.
    pub(super) id: Option<String>,
    /// Where the object runs.
    pub(super) environment: Option<Environment>,
    /// What it is there for.
    pub(super) service_name: Option<String>,
    /// What the provider says of it.
    pub(super) cf_id: Option<String>,
    pub(super) cf_url: Option<String>,
    pub(super) ssl_status: Option<SslStatus>,
}

impl Repair {
    pub(super) fn new(name: &str, action: Mended) -> Self {
        Self {
            name: name.to_owned(),
            action,
            id: None,
            environment: None,
            service_name: None,
            cf_id: None,
            cf_url: None,
            ssl_status: None,
        }
    }
}
