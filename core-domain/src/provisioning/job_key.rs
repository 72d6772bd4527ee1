//! Idempotency keys of jobs.

use serde::Serializer;

use crate::kernel::{PlatformId, TextValue, arbitrary};

/// The separator between kind, platform and key.
const SEPARATOR: char = '\n';

/// The idempotency key of a job, scoped to its kind and its platform. Serializes as the key without its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(String);

impl JobKey {
    /// Creates the key of a job of this kind; `platform` is `None` for a job without a platform.
    #[must_use]
    pub fn new(kind: &str, platform: Option<&PlatformId>, key: &str) -> Self {
        let platform = platform.map_or("", PlatformId::as_str);
        Self(format!("{kind}{SEPARATOR}{platform}{SEPARATOR}{key}"))
    }

    /// Returns the key without its scope.
    #[must_use]
    pub fn key(&self) -> &str {
        // Earlier versions stored keys without a scope.
        self.0.splitn(3, SEPARATOR).nth(2).unwrap_or(&self.0)
    }

    /// Returns the key with its scope.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for JobKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

impl TextValue for JobKey {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

arbitrary!(JobKey as "[a-z]{1,8}\n[a-z0-9-]{0,8}\n[ -~]{1,16}");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_for_one_kind_and_one_platform_and_is_shown_alone() {
        let platforms = ["p1", "p2"].map(|id| PlatformId::parse(id).unwrap());
        let keys = [
            JobKey::new("report", None, "may"),
            JobKey::new("letter", None, "may"),
            JobKey::new("report", Some(&platforms[0]), "may"),
            JobKey::new("report", Some(&platforms[1]), "may"),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
            assert_eq!(key.key(), "may");
            assert_eq!(serde_json::to_value(key).unwrap(), "may");
        }
        assert_eq!(JobKey::from_text("may").unwrap().key(), "may");
    }
}
