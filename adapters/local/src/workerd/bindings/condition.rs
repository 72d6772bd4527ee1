//! The preconditions of a script's call on an object.

use core_domain::kernel::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::object::ObjectInfo;

/// The conditions of a call. A condition that is absent always holds.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    etag_matches: Vec<Etag>,
    etag_does_not_match: Vec<Etag>,
    uploaded_before: Option<Value>,
    uploaded_after: Option<Value>,
    seconds_granularity: bool,
}

#[derive(Deserialize)]
struct Etag {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    value: String,
}

impl Etag {
    fn matches(&self, info: Option<&ObjectInfo>) -> bool {
        info.is_some_and(|info| self.kind == "wildcard" || info.etag == self.value)
    }
}

impl Condition {
    /// Returns whether the conditions hold for the object of a key; `None` means that the key has no object.
    pub(super) fn holds(&self, info: Option<&ObjectInfo>) -> bool {
        let matches =
            self.etag_matches.is_empty() || self.etag_matches.iter().any(|etag| etag.matches(info));
        let differs = !self
            .etag_does_not_match
            .iter()
            .any(|etag| etag.matches(info));
        matches && differs && self.matches_time(info)
    }

    fn matches_time(&self, info: Option<&ObjectInfo>) -> bool {
        let Some(at) = info.map(|info| self.truncate_to_granularity(info.uploaded_at.millis()))
        else {
            return self.uploaded_before.is_none() && self.uploaded_after.is_none();
        };
        let bound = |value: &Option<Value>| {
            millis(value.as_ref()?).map(|at| self.truncate_to_granularity(at))
        };
        bound(&self.uploaded_before).is_none_or(|bound| at < bound)
            && bound(&self.uploaded_after).is_none_or(|bound| at > bound)
    }

    fn truncate_to_granularity(&self, millis: i64) -> i64 {
        if self.seconds_granularity {
            Timestamp::from_millis(millis).seconds() * 1_000
        } else {
            millis
        }
    }
}

/// Parses a number, which may be a string.
fn millis(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(condition: Value, info: Option<&ObjectInfo>) -> bool {
        let condition: Condition = serde_json::from_value(condition).unwrap();
        condition.holds(info)
    }

    #[test]
    fn conditions_compare_entity_tags_and_times() {
        let info = json!({
            "key": "k", "contentType": "text/plain", "etag": "abc", "size": 1, "uploadedAt": Timestamp::from_millis(1_500),
        });
        let info: ObjectInfo = serde_json::from_value(info).unwrap();
        let tag = |value: &str| json!([{ "type": "strong", "value": value }]);
        for (condition, expected, of_nothing) in [
            (json!({}), true, true),
            (json!({ "etagMatches": tag("abc") }), true, false),
            (json!({ "etagMatches": tag("other") }), false, false),
            (json!({ "etagDoesNotMatch": tag("abc") }), false, true),
            (
                json!({ "etagDoesNotMatch": [{ "type": "wildcard" }] }),
                false,
                true,
            ),
            (json!({ "uploadedBefore": "1501" }), true, false),
            (json!({ "uploadedAfter": 1_500 }), false, false),
            (
                json!({ "uploadedBefore": 1_900, "secondsGranularity": true }),
                false,
                false,
            ),
        ] {
            assert_eq!(
                holds(condition.clone(), Some(&info)),
                expected,
                "{condition}"
            );
            assert_eq!(holds(condition.clone(), None), of_nothing, "{condition}");
        }
    }
}
