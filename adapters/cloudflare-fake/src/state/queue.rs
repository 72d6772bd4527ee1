//! A queue.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A queue with its consumers.
pub(crate) struct Queue {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) created: String,
    pub(crate) settings: Map<String, Value>,
    pub(crate) consumers: Vec<Consumer>,
}

/// A consumer of a queue.
pub(crate) struct Consumer {
    pub(crate) id: String,
    pub(crate) created: String,
    pub(crate) body: ConsumerBody,
}

#[derive(Deserialize)]
pub(crate) struct ConsumerBody {
    pub(crate) r#type: String,
    pub(crate) script_name: Option<String>,
    pub(crate) dead_letter_queue: Option<String>,
    #[serde(default)]
    pub(crate) settings: Map<String, Value>,
}

impl Queue {
    /// Returns whether a script consumes the queue.
    pub(crate) fn is_consumed_by(&self, script: &str) -> bool {
        self.consumers
            .iter()
            .any(|consumer| consumer.body.script_name.as_deref() == Some(script))
    }

    /// Removes the consumer of a script.
    pub(crate) fn remove_consumer_of(&mut self, script: &str) {
        self.consumers
            .retain(|consumer| consumer.body.script_name.as_deref() != Some(script));
    }

    pub(crate) fn view(&self) -> Value {
        let consumers: Vec<_> = self
            .consumers
            .iter()
            .map(|consumer| consumer.view(self))
            .collect();
        json!({
            "queue_id": self.id,
            "queue_name": self.name,
            "created_on": self.created,
            "modified_on": self.created,
            "settings": self.settings,
            "producers": [],
            "producers_total_count": 0,
            "consumers_total_count": consumers.len(),
            "consumers": consumers,
        })
    }
}

impl Consumer {
    pub(crate) fn view(&self, queue: &Queue) -> Value {
        let mut view = json!({
            "consumer_id": self.id,
            "created_on": self.created,
            "queue_name": queue.name,
            "type": self.body.r#type,
            "settings": self.body.settings,
        });
        // wrangler reads `script`; the document has `script_name`.
        for (name, value) in [
            ("script", &self.body.script_name),
            ("script_name", &self.body.script_name),
            ("dead_letter_queue", &self.body.dead_letter_queue),
        ] {
            if let Some(value) = value {
                view[name] = json!(value);
            }
        }
        view
    }
}
