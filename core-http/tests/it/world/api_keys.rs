//! Validation of API keys, as services request it.

use core_http::kernel::bytes_body;
use serde_json::{Value, json};

use super::{World, operator};

pub(crate) const VALIDATE: &str = "/api/core/apikey/validate";

impl World {
    /// Creates an API key for an organization as the owner of this session token. Returns its secret.
    pub(crate) async fn organization_key(&self, token: &str, organization: &str) -> String {
        let body = json!({ "name": "ci", "organizationId": organization });
        let request = http::Request::post("/api/auth/api-key/create")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json");
        let request = request.body(bytes_body(body.to_string())).unwrap();
        let created = self.iam.raw(request).await;
        assert!(created.is_success(), "{}", created.json);
        created.text("key").to_owned()
    }

    /// Returns the validation result of a key, as a service receives it.
    pub(crate) async fn validate_key(&self, secret: &str) -> Value {
        let body = json!({ "key": secret });
        let answer = self.iam.post(&operator(), VALIDATE, body).await;
        answer.expect(200).json
    }

    /// Returns `VALID` if a key is accepted, otherwise the code of the refusal.
    pub(crate) async fn key_verdict(&self, secret: &str) -> String {
        let found = self.validate_key(secret).await;
        match found["code"].as_str() {
            None => {
                assert_eq!(found["valid"], true, "{found}");
                "VALID".to_owned()
            }
            Some(code) => {
                assert_eq!(found, json!({ "valid": false, "code": code }));
                code.to_owned()
            }
        }
    }
}
