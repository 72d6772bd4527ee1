//! Metered usage: reports events, and reads what was invoiced for them.

use serde_json::{Value, json};

use super::{Answer, World, operator};

/// Returns an event of the source `test`, without a time.
pub(crate) fn usage_event(platform: &str, id: &str, metric: &str, quantity: i64) -> Value {
    json!({ "id": id, "source": "test", "platformId": platform, "metric": metric, "quantity": quantity })
}

/// Returns an object with the fields of another one.
pub(crate) fn with_fields(mut object: Value, fields: Value) -> Value {
    if let Value::Object(fields) = fields {
        for (name, value) in fields {
            object[name] = value;
        }
    }
    object
}

impl World {
    /// Reports events. An event without a time has the time of the clock.
    pub(crate) async fn report_usage(&self, events: Vec<Value>) -> Answer {
        let now = core_domain::kernel::Clock::now(self.clock.as_ref());
        let timed = |event| with_fields(json!({ "time": now }), event);
        let events: Vec<_> = events.into_iter().map(timed).collect();
        let body = json!({ "events": events });
        self.billing
            .post(&operator(), "/internal/usage/events", body)
            .await
    }

    /// Reports that a platform used this quantity now.
    pub(crate) async fn use_metric(&self, platform: &str, id: &str, metric: &str, quantity: i64) {
        let event = usage_event(platform, id, metric, quantity);
        let reported = self.report_usage(vec![event]).await.expect(200);
        assert_eq!(reported.json["accepted"], 1, "{}", reported.json);
    }

    /// Returns a resource of the usage of a platform.
    pub(crate) async fn usage_of(&self, platform: &str, path: &str) -> Value {
        let and = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{and}platformId={platform}");
        self.billing.get(&operator(), &path).await.expect(200).json
    }

    /// Makes what is due in billing at an instant, and returns the types and amounts of the lines of all invoices for usage,
    /// oldest first.
    pub(crate) async fn usage_lines_at(&self, platform: &str, at: &str) -> Vec<(String, i64)> {
        self.bill_until(at).await;
        let invoices = self.invoices(platform).await;
        let usage = invoices
            .iter()
            .filter(|invoice| invoice["billingReason"] == "usage");
        let lines = usage.flat_map(|invoice| invoice["lines"].as_array().unwrap());
        let line = |line: &Value| {
            let kind = line["type"].as_str().unwrap().to_owned();
            (kind, line["amount"].as_i64().unwrap())
        };
        lines.map(line).collect()
    }
}
