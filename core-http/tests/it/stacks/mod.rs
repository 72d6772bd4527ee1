//! The stack registry: templates and versions, beyond what the generated tests cover.

mod templates;
mod versions;

use serde_json::{Value, json};

use crate::world::{Answer, World, operator};

const STACKS: &str = "/api/v1/stacks";

fn template(name: &str) -> Value {
    json!({ "name": name, "displayName": "Web", "description": "A web shop", "domain": "shops" })
}

impl World {
    async fn stack(&self, path: &str) -> Answer {
        let path = format!("{STACKS}{path}");
        self.stacks.get(&operator(), &path).await.expect(200)
    }

    async fn create_stack(&self, name: &str) {
        let created = self.stacks.post(&operator(), STACKS, template(name)).await;
        let _ = created.expect(201);
    }

    async fn publish(&self, name: &str, version: &str, definition: &Value) -> Answer {
        let body = json!({
            "version": version, "stackDefinition": definition, "coreSdkVersion": "1.0.0",
        });
        let path = format!("{STACKS}/{name}/versions");
        self.stacks.post(&operator(), &path, body).await
    }

    async fn deprecate(&self, name: &str, version: &str) {
        let path = format!("{STACKS}/{name}/{version}");
        let done = self.stacks.delete(&operator(), &path).await.expect(200);
        assert_eq!(done.json, json!({ "ok": true }));
    }
}
