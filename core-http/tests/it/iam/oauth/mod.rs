//! Sign-in of programs with OAuth tokens, and service tokens.

mod access_tokens;
mod device;
mod encodings;
mod refresh;
mod service_tokens;
mod whoami;

use crate::world::{Answer, World};
use serde_json::Value;

const WHOAMI: &str = "/api/v1/cli/whoami";

impl World {
    async fn whoami(&self, token: &str) -> Answer {
        self.send_with_bearer(token, "POST", WHOAMI).await
    }

    async fn session_expiries(&self, token: &str) -> Vec<Value> {
        let list = self
            .send_with_bearer(token, "GET", super::SESSIONS)
            .await
            .expect(200);
        let sessions = list.json["data"].as_array().unwrap().clone();
        sessions
            .into_iter()
            .map(|s| s["expiresAt"].clone())
            .collect()
    }
}
