//! Idempotency keys: the stored responses of earlier requests.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::envelope::Refusal;
use crate::request::Request;

/// The time in seconds after which a key is new again.
const LIFETIME: i64 = 24 * 60 * 60;

/// Maximum length of a key.
const MAX_KEY_CHARS: usize = 255;

/// The stored response of a request.
struct StoredResponse {
    fingerprint: blake3::Hash,
    status: u16,
    body: Value,
    created: i64,
    /// The request runs until this time.
    runs_until: Option<Instant>,
}

/// The stored responses by key.
#[derive(Default)]
pub(crate) struct Keys(BTreeMap<String, StoredResponse>);

fn fingerprint(request: &Request) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(request.path.as_bytes());
    hasher.update(b"\n");
    hasher.update(&request.body);
    hasher.finalize()
}

impl Keys {
    /// Returns the stored response of a key. Returns `None` if the key is new.
    ///
    /// # Errors
    /// A refusal if the key is too long, belongs to other parameters, or its request still runs.
    pub(crate) fn find(
        &self,
        request: &Request,
        key: &str,
        now: i64,
    ) -> Result<Option<(u16, Value)>, Refusal> {
        let refusal = |status, message| Refusal::new(status, "idempotency_error", message);
        if key.len() > MAX_KEY_CHARS {
            return Err(refusal(400, "Idempotency keys have at most 255 characters.").not_kept());
        }
        let stored = self.0.get(key);
        let Some(stored) = stored.filter(|stored| now < stored.created + LIFETIME) else {
            return Ok(None);
        };
        if stored.fingerprint != fingerprint(request) {
            let message = "Keys for idempotent requests can only be used with the same parameters they were first used with.";
            return Err(refusal(400, message).not_kept());
        }
        if stored
            .runs_until
            .is_some_and(|until| Instant::now() < until)
        {
            let message = "There is currently another in-progress request using this key.";
            let running = refusal(409, message).code("idempotency_key_in_use");
            return Err(running.not_kept());
        }
        Ok(Some((stored.status, stored.body.clone())))
    }

    pub(crate) fn store(&mut self, request: &Request, status: u16, body: &Value, now: i64) {
        let Some(key) = request.idempotency_key() else {
            return;
        };
        let response = StoredResponse {
            fingerprint: fingerprint(request),
            status,
            body: body.clone(),
            created: now,
            runs_until: None,
        };
        self.0.insert(key.to_owned(), response);
    }

    /// Makes the request of a key run for some time.
    pub(crate) fn delay(&mut self, key: &str, by: Duration) {
        if let Some(stored) = self.0.get_mut(key) {
            stored.runs_until = Some(Instant::now() + by);
        }
    }
}
