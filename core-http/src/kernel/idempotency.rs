//! `Idempotency-Key`: a write that is sent twice happens once, and both get the same answer.
//!
//! A key belongs to its caller, method and path. The answer is a row in the very unit of work of the change; who sends
//! the same key while the first request still runs is asked to wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use core_domain::kernel::{Caller, Code, Error, Result, hex};
use core_domain::port::{StoreError, UnitOfWork};
use core_domain::shared::{IdempotencyKey, KEPT_FOR};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use sha2::{Digest, Sha256};

use super::{Reply, header_names};

const HEADER: &str = "idempotency-key";

/// The keys of writes that run in this process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<HashSet<String>>>);

/// The right to run the write of one key; given back when dropped.
#[derive(Debug)]
pub struct Claim {
    id: String,
    running: InFlight,
}

impl Claim {
    /// Claims the key of a request; `None` when it has none, or nobody is known to whom it could belong.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` for a key that is none, `IDEMPOTENCY_IN_PROGRESS` when its first request still runs.
    pub(super) fn of(
        running: &InFlight,
        caller: &Caller,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<Self>> {
        let Some(key) = key_of(headers)? else {
            return Ok(None);
        };
        if matches!(caller, Caller::Anonymous) {
            return Ok(None);
        }
        let id = hash(&[caller.kind(), caller.actor_id(), method.as_str(), path, key]);
        let mut keys = running.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.insert(id.clone()) {
            return Err(in_progress());
        }
        Ok(Some(Self {
            id,
            running: running.clone(),
        }))
    }

    /// The answer this key already has. `request` identifies what was asked: see [`Claim::request_hash`].
    ///
    /// # Errors
    /// `IDEMPOTENCY_KEY_REUSED` when it was given to another request.
    pub async fn seen(&self, uow: &mut dyn UnitOfWork, request: &str) -> Result<Option<Reply>> {
        let now = uow.now().await?;
        let Some(row) = uow.idempotency_keys().get(&self.id).await? else {
            return Ok(None);
        };
        if row.expires_at <= now {
            return Ok(None);
        }
        if row.request_hash != request {
            return Err(Error::refused(
                Code::IdempotencyKeyReused,
                "This idempotency key was used with another request.",
            ));
        }
        let status = u16::try_from(row.status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok())
            .ok_or_else(|| Error::Internal(format!("stored status {} is none", row.status)))?;
        let mut headers = HeaderMap::new();
        headers.insert(header_names::REPLAYED, HeaderValue::from_static("true"));
        Ok(Some(Reply {
            status,
            body: (!row.body.is_empty()).then(|| row.body.clone()),
            headers,
            tag: None,
        }))
    }

    /// Stores the answer in the unit of the change.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` when another process was faster.
    pub async fn keep(&self, uow: &mut dyn UnitOfWork, request: &str, reply: &Reply) -> Result<()> {
        let now = uow.now().await?;
        if let Some(expired) = uow.idempotency_keys().get(&self.id).await? {
            uow.idempotency_keys().remove(&expired).await?;
        }
        let row = IdempotencyKey {
            id: self.id.clone(),
            request_hash: request.to_owned(),
            status: i64::from(reply.status.as_u16()),
            body: reply.body.clone().unwrap_or_default(),
            created_at: now,
            expires_at: now.plus(KEPT_FOR),
        };
        match uow.idempotency_keys().insert(row).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict { .. }) => Err(in_progress()),
            Err(error) => Err(error.into()),
        }
    }

    /// What identifies a request: its query string, and the canonical JSON of its body or the hash of an upload.
    #[must_use]
    pub fn request_hash(query: Option<&str>, body: &str) -> String {
        hash(&[query.unwrap_or_default(), body])
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut keys = self
            .running
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        keys.remove(&self.id);
    }
}

fn in_progress() -> Error {
    Error::refused(
        Code::IdempotencyInProgress,
        "The first request with this idempotency key still runs.",
    )
}

/// The key of a request, if it has one.
///
/// # Errors
/// `VALIDATION_ERROR` for a key that is none.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<&str>> {
    headers.get(HEADER).map(readable).transpose()
}

/// The key without quotes: 1 to 255 visible characters.
fn readable(value: &HeaderValue) -> Result<&str> {
    let refuse = || {
        Error::invalid(
            "Idempotency-Key",
            "pattern",
            "must be 1 to 255 visible characters",
        )
    };
    let text = value.to_str().map_err(|_| refuse())?;
    let key = text
        .strip_prefix('"')
        .and_then(|t| t.strip_suffix('"'))
        .unwrap_or(text);
    if (1..=255).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(key)
    } else {
        Err(refuse())
    }
}

/// SHA-256 in hex of the parts, each with its length, so that no two lists of parts are the same text.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_be_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}
