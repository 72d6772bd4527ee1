//! `Idempotency-Key`: a write that is sent twice is executed once, and both requests get the same response.
//!
//! A key belongs to a caller and a service. It identifies a request by method, documented path, query and body; a
//! different request with the same key is refused. The response is stored in the unit of work of the change, for 24
//! hours. While the first request with a key is in progress, others with the same key are refused with
//! `IDEMPOTENCY_IN_PROGRESS`.
//!
//! - [`Claim`]: the exclusive right to execute the request with a key. It also reads and stores the response.
//! - [`Progress`]: how far a write got, which decides whether its refusal is stored.
//! - [`Claim::find_work`] and [`Claim::finish_work`]: the work of handlers in two parts, see
//!   [`Row::writes_then`](crate::kernel::Row::writes_then).
//! - [`find_stored`] and [`Claim::must_withhold`]: a stored response is returned only to a caller who is still
//!   authorized.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use core_domain::access::ensure_fresh;
use core_domain::kernel::{
    Caller, Cipher, Code, Context, Error, Result, StoreError, Timestamp, hex,
};
use core_domain::port::UnitOfWork;
use core_domain::shared::{RESPONSE_LIFETIME, StoredResponse};
use core_domain::use_case::shared::{find_answer, replace_answer, store_answer};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::kernel::answer::envelope::status_of;
use crate::kernel::answer::reply::{Content, Reply};
use crate::kernel::process::in_flight::InFlight;
use crate::kernel::request::header_names;

/// The scope in which a key is unique: a service and a caller.
pub(crate) struct KeyScope<'a> {
    pub(crate) service: &'static str,
    pub(crate) caller: &'a Caller,
}

impl KeyScope<'_> {
    /// Returns the id under which the response for a key is stored.
    fn id_of(&self, key: &str) -> String {
        let caller = self.caller;
        hash(&[caller.kind(), caller.actor_id(), self.service, key])
    }
}

/// The exclusive right in this process to execute the write with a key. It is released when dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The id of the key in its scope.
    id: String,
    /// Hash of method, documented path, query and body.
    request_hash: String,
    rules: ClaimRules,
    running: InFlight,
}

/// The properties of a row that decide about its stored responses.
#[derive(Debug)]
pub(crate) struct ClaimRules {
    /// Encrypts the stored responses of rows whose responses contain secrets.
    pub(crate) cipher: Option<Cipher>,
    /// Whether a success of the row can take away the access that the row requires, see
    /// [`Row::ends_access`](crate::kernel::Row::ends_access).
    pub(crate) ends_access: bool,
    /// The code that the row uses in place of `NOT_FOUND`.
    pub(crate) not_found: Code,
}

/// A response in the form in which it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredAnswer {
    status: StatusCode,
    /// Names and values, with the entity tag and without cookies.
    headers: Vec<(String, String)>,
    /// The JSON text, encrypted if it contains a secret; empty without content.
    body: String,
    needs_proof: bool,
}

/// The time after which the process that runs a second part is taken for dead.
const WORK_TIMEOUT: Duration = Duration::from_secs(60);

/// What the second part of a handler has led to.
#[derive(Clone, Debug)]
pub(crate) enum StoredWork {
    /// A response or a final refusal.
    Answered(StoredAnswer),
    /// The outcome is unknown. A repeated request runs the second part again.
    Interrupted,
    /// Nothing has happened. A repeated request runs both parts.
    Forgotten,
}

/// The stored response to an earlier request with the same key.
pub(crate) struct FoundAnswer {
    pub(crate) reply: Reply,
    /// Whether the first request required a fresh proof of the caller's identity. A replay requires one as well.
    pub(crate) needs_proof: bool,
}

impl Claim {
    /// Claims the key of a request. `request` consists of the method, the documented path, the query string, and the
    /// canonical JSON of the body.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` if a request with the same key is in progress in this process.
    pub(crate) fn of(
        running: &InFlight,
        scope: &KeyScope<'_>,
        key: &str,
        request: &[&str],
        rules: ClaimRules,
    ) -> Result<Self> {
        let id = scope.id_of(key);
        if !running.insert(&id) {
            return Err(in_progress());
        }
        Ok(Self {
            id,
            request_hash: hash(request),
            rules,
            running: running.clone(),
        })
    }

    /// Finds the response that is stored for this key.
    ///
    /// # Errors
    /// `IDEMPOTENCY_KEY_REUSED` if it is the response to a different request.
    pub(crate) async fn find(&self, uow: &mut dyn UnitOfWork) -> Result<Option<FoundAnswer>> {
        let Some(stored) = find_answer(uow, &self.id).await? else {
            return Ok(None);
        };
        if stored.request_hash != self.request_hash {
            return Err(key_reused());
        }
        Ok(Some(FoundAnswer {
            reply: self.decode_reply(&stored)?,
            needs_proof: stored.needs_proof,
        }))
    }

    /// Finds the work that an earlier request with this key has left, if its second part can be run again.
    ///
    /// # Errors
    /// - `IDEMPOTENCY_KEY_REUSED` if it is the work of a different request.
    /// - `IDEMPOTENCY_IN_PROGRESS` if another process may be running the second part.
    pub(crate) async fn find_work(&self, uow: &mut dyn UnitOfWork) -> Result<Option<Value>> {
        let Some(stored) = find_answer(uow, &self.id).await? else {
            return Ok(None);
        };
        let may_run = match stored.status {
            StoredResponse::WORK_RUNNING => {
                uow.now().await?.since(stored.created_at) < WORK_TIMEOUT
            }
            StoredResponse::WORK_INTERRUPTED => false,
            _ => return Ok(None),
        };
        if stored.request_hash != self.request_hash {
            return Err(key_reused());
        }
        if may_run {
            return Err(in_progress());
        }
        let work = match &self.rules.cipher {
            Some(cipher) => cipher.open(&self.id, &stored.body)?,
            None => stored.body,
        };
        let work = serde_json::from_str(&work);
        work.map_err(|error| Error::Internal(format!("stored work cannot be read: {error}")))
    }

    /// Stores the work that the first part of a handler leaves, in its unit of work.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` if another process has used the key in the meantime.
    pub(crate) async fn store_work(&self, uow: &mut dyn UnitOfWork, work: &Value) -> Result<()> {
        let work = work.to_string();
        let body = match &self.rules.cipher {
            Some(cipher) => cipher.seal(&self.id, &work)?,
            None => work,
        };
        let now = uow.now().await?;
        let stored =
            store_answer(uow, self.response(StoredResponse::WORK_RUNNING, body, now)).await?;
        if stored { Ok(()) } else { Err(in_progress()) }
    }

    /// Replaces the stored work by what its second part has led to.
    ///
    /// # Errors
    /// Only those of the store.
    pub(crate) async fn finish_work(
        &self,
        uow: &mut dyn UnitOfWork,
        outcome: &StoredWork,
    ) -> Result<()> {
        let now = uow.now().await?;
        let next = match outcome {
            StoredWork::Forgotten => None,
            StoredWork::Interrupted => {
                let known = find_answer(uow, &self.id).await?;
                known.map(|known| StoredResponse {
                    status: StoredResponse::WORK_INTERRUPTED,
                    ..known
                })
            }
            StoredWork::Answered(answer) => {
                let response =
                    self.response(i64::from(answer.status.as_u16()), answer.body.clone(), now);
                Some(StoredResponse {
                    headers: answer.headers.clone(),
                    ..response
                })
            }
        };
        replace_answer(uow, &self.id, next).await
    }

    /// Returns the stored form of a response or of work.
    fn response(&self, status: i64, body: String, now: Timestamp) -> StoredResponse {
        StoredResponse {
            id: self.id.clone(),
            request_hash: self.request_hash.clone(),
            status,
            headers: Vec::new(),
            body,
            needs_proof: false,
            created_at: now,
            expires_at: now.plus(RESPONSE_LIFETIME),
        }
    }

    /// Returns whether a success of the row can take away the access that the row requires.
    pub(crate) const fn ends_access(&self) -> bool {
        self.rules.ends_access
    }

    /// Returns whether the responses of the row contain secrets.
    const fn is_secret(&self) -> bool {
        self.rules.cipher.is_some()
    }

    /// Returns whether the error of the repeated handler is returned instead of the stored response, because the caller
    /// may no longer see it.
    pub(crate) fn must_withhold(&self, error: &Error) -> bool {
        match error {
            Error::Unauthorized | Error::Forbidden => true,
            // The records have changed since, for example because of the first request.
            Error::Store(StoreError::Conflict { .. } | StoreError::Stale { .. }) => false,
            // The unit of work has to run again, or the store is down.
            Error::Store(_) => true,
            // The caller cannot see the record any more. A secret of it is withheld, and everything if the row reports
            // missing records as forbidden.
            Error::NotFound(_) => {
                self.is_secret() || status_of(self.rules.not_found) == StatusCode::FORBIDDEN
            }
            Error::Refused { code, .. } => match status_of(*code) {
                StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => true,
                StatusCode::NOT_FOUND => self.is_secret(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Converts a response into the form in which it is stored.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the response is not JSON.
    pub(crate) fn record(&self, reply: &Reply, needs_proof: bool) -> Result<StoredAnswer> {
        Ok(StoredAnswer {
            status: reply.status,
            headers: stored_headers(reply),
            body: self.encode_body(reply)?,
            needs_proof,
        })
    }

    /// Stores the response in the unit of work of the change.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` if another process has stored a response for the key in the meantime. The change is
    /// then not committed.
    pub(crate) async fn store(&self, uow: &mut dyn UnitOfWork, answer: StoredAnswer) -> Result<()> {
        if self.store_unless_known(uow, answer).await? {
            Ok(())
        } else {
            Err(in_progress())
        }
    }

    /// Stores a refusal, unless another process has stored a response for the key in the meantime.
    pub(crate) async fn store_refusal(
        &self,
        uow: &mut dyn UnitOfWork,
        refusal: StoredAnswer,
    ) -> Result<()> {
        self.store_unless_known(uow, refusal).await.map(drop)
    }

    /// Stores a response if the key has none, and returns whether it was stored.
    async fn store_unless_known(
        &self,
        uow: &mut dyn UnitOfWork,
        answer: StoredAnswer,
    ) -> Result<bool> {
        let now = uow.now().await?;
        let status = i64::from(answer.status.as_u16());
        let answer = StoredResponse {
            headers: answer.headers,
            needs_proof: answer.needs_proof,
            ..self.response(status, answer.body, now)
        };
        store_answer(uow, answer).await
    }

    /// Returns the body as it is stored: encrypted if the row has secrets.
    fn encode_body(&self, reply: &Reply) -> Result<String> {
        let text = match &reply.content {
            Content::Empty => return Ok(String::new()),
            Content::Json(text) => text,
            Content::Bytes(..) | Content::Stream(..) => {
                return Err(Error::Internal("only JSON responses are stored".to_owned()));
            }
        };
        match &self.rules.cipher {
            Some(cipher) => cipher.seal(&self.id, text),
            None => Ok(text.clone()),
        }
    }

    /// Converts a stored response back into a reply, and adds the header `Idempotency-Replayed`.
    fn decode_reply(&self, stored: &StoredResponse) -> Result<Reply> {
        let status = u16::try_from(stored.status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok())
            .ok_or_else(|| Error::Internal(format!("invalid stored status {}", stored.status)))?;
        let content = match (&self.rules.cipher, stored.body.as_str()) {
            (_, "") => Content::Empty,
            (Some(cipher), sealed) => Content::Json(cipher.open(&self.id, sealed)?),
            (None, text) => Content::Json(text.to_owned()),
        };
        let mut headers = HeaderMap::new();
        let mut etag = None;
        for (name, value) in &stored.headers {
            if name == header::ETAG.as_str() {
                etag = Some(value.clone());
            } else if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.append(name, value);
            }
        }
        headers.insert(
            header_names::REPLAYED.clone(),
            HeaderValue::from_static("true"),
        );
        Ok(Reply {
            status,
            content,
            headers,
            etag,
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.running.remove(&self.id);
    }
}

/// Returns the headers of a response that are stored: all except cookies, and the entity tag.
fn stored_headers(reply: &Reply) -> Vec<(String, String)> {
    let etag = reply.etag.iter();
    let etag = etag.map(|etag| (header::ETAG.to_string(), etag.clone()));
    let others = reply.headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        (name != header::SET_COOKIE).then(|| (name.to_string(), value.to_owned()))
    });
    etag.chain(others).collect()
}

fn key_reused() -> Error {
    Error::refused(
        Code::IdempotencyKeyReused,
        "This idempotency key was used with another request.",
    )
}

fn in_progress() -> Error {
    Error::refused(
        Code::IdempotencyInProgress,
        "The first request with this idempotency key is still in progress.",
    )
}

/// Returns the SHA-256 of the parts in hex. Each part is hashed with its length, so that different lists of parts have
/// different hashes.
fn hash(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_be_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

/// The progress of a write, which decides whether and how its refusal is stored.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    claim: Option<Claim>,
    was_let_in: AtomicBool,
    needs_proof: AtomicBool,
}

impl Progress {
    /// Creates the progress of a write that has not started. `claim` is the claim on its idempotency key; `None` if the
    /// row does not accept keys or the request has none.
    pub(crate) fn of(claim: Option<Claim>) -> Self {
        Self {
            claim,
            ..Self::default()
        }
    }

    /// Returns the claim on the idempotency key of the request.
    pub(crate) const fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    /// Resets the progress before the unit of work runs again.
    pub(crate) fn reset(&self) {
        self.was_let_in.store(false, Ordering::Relaxed);
        self.needs_proof.store(false, Ordering::Relaxed);
    }

    /// Records that the caller was authorized. A refusal after this point depends on the request and can be stored.
    pub(crate) fn note_let_in(&self) {
        self.was_let_in.store(true, Ordering::Relaxed);
    }

    /// Records whether the unit of work required a fresh proof of the caller's identity.
    pub(crate) fn note_unit(&self, uow: &mut dyn UnitOfWork) {
        let needs_proof = uow.effects().needs_fresh_proof();
        self.needs_proof.store(needs_proof, Ordering::Relaxed);
    }

    /// Returns whether the caller was authorized.
    pub(crate) fn was_authorized(&self) -> bool {
        self.was_let_in.load(Ordering::Relaxed)
    }

    /// Returns whether the unit of work required a fresh proof of the caller's identity.
    pub(crate) fn needs_proof(&self) -> bool {
        self.needs_proof.load(Ordering::Relaxed)
    }
}

/// Finds the stored response of a request, and returns it with the outcome of the authorization.
///
/// If the authorization failed, a stored response is looked up only if the first request can be the cause of the
/// failure:
/// - `INVALID_STATE`, for example after the deletion of a platform,
/// - `NOT_FOUND` and `NO_ACTIVE_ORGANIZATION` on a row that ends access.
///
/// # Errors
/// - `IDEMPOTENCY_KEY_REUSED` if the key belongs to a different request.
/// - `STEP_UP_REQUIRED` if the first request required a fresh proof of identity and the caller has none.
pub(crate) async fn find_stored<S>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    claim: Option<&Claim>,
    scope: Result<S>,
) -> Result<(Option<FoundAnswer>, Result<S>)> {
    let is_shown = |claim: &&Claim| match &scope {
        Ok(_) | Err(Error::InvalidState { .. }) => true,
        Err(error) => {
            claim.ends_access()
                && matches!(error.code(), Code::NotFound | Code::NoActiveOrganization)
        }
    };
    let Some(claim) = claim.filter(is_shown) else {
        return Ok((None, scope));
    };
    let found = claim.find(uow).await?;
    if found.as_ref().is_some_and(|found| found.needs_proof) {
        ensure_fresh(cx, uow).await?;
    }
    Ok((found, scope))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use core_domain::port::{Mode, Store, transact};
    use core_domain::testing::{ManualClock, SeededEntropy};

    use crate::kernel::answer::reply::reply;

    use super::*;

    fn store() -> Arc<dyn Store> {
        core_storage::memory::open(core_storage::memory::MemoryConfig {
            clock: Arc::new(ManualClock::at(core_domain::kernel::Timestamp::EPOCH)),
            cursor_key: [7; 32].into(),
        })
    }

    /// Claims the key of the same request as another process would.
    fn claim(cipher: Option<Cipher>) -> Claim {
        let caller = Caller::Service {
            name: "key".to_owned(),
        };
        let scope = KeyScope {
            service: "test",
            caller: &caller,
        };
        let request = ["POST", "/a", "", "{}"];
        let rules = ClaimRules {
            cipher,
            ends_access: false,
            not_found: Code::NotFound,
        };
        Claim::of(&InFlight::default(), &scope, "k1", &request, rules).unwrap()
    }

    fn json(status: StatusCode, text: &str) -> Reply {
        reply(status, Content::Json(text.to_owned()))
    }

    /// Stores a response as that of a change, or as a refusal.
    async fn keep(store: &dyn Store, claim: &Claim, answer: &Reply, changed: bool) -> Result<()> {
        let answer = &claim.record(answer, false)?;
        transact(store, |uow, _| {
            Box::pin(async move {
                match changed {
                    true => claim.store(uow, answer.clone()).await,
                    false => claim.store_refusal(uow, answer.clone()).await,
                }
            })
        })
        .await
    }

    async fn find_reply(store: &dyn Store, claim: &Claim) -> Reply {
        let mut uow = store.begin(Mode::Read).await.unwrap();
        let found = claim.find(uow.as_mut()).await;
        found.unwrap().unwrap().reply
    }

    #[tokio::test]
    async fn a_response_stored_by_another_process_is_not_replaced() {
        let (store, claim) = (store(), claim(None));
        keep(
            store.as_ref(),
            &claim,
            &json(StatusCode::CREATED, "1"),
            true,
        )
        .await
        .unwrap();
        let refusal = json(StatusCode::CONFLICT, "2");
        keep(store.as_ref(), &claim, &refusal, false).await.unwrap();
        let second = keep(
            store.as_ref(),
            &claim,
            &json(StatusCode::CREATED, "3"),
            true,
        )
        .await;
        assert_eq!(second.unwrap_err().code(), Code::IdempotencyInProgress);
        let reply = find_reply(store.as_ref(), &claim).await;
        assert_eq!(reply.status, StatusCode::CREATED);
        assert!(matches!(reply.content, Content::Json(text) if text == "1"));
    }

    #[tokio::test]
    async fn secret_responses_are_replayed_and_encrypted_in_the_store() {
        let cipher = Cipher::new([1; 32], Arc::new(SeededEntropy::new(1)));
        for (cipher, readable) in [(Some(cipher), false), (None, true)] {
            let (store, claim) = (store(), claim(cipher));
            let answer = json(StatusCode::CREATED, "\"the secret\"");
            keep(store.as_ref(), &claim, &answer, true).await.unwrap();
            let mut uow = store.begin(Mode::Read).await.unwrap();
            let stored = find_answer(uow.as_mut(), &claim.id).await.unwrap().unwrap();
            assert_eq!(stored.body.contains("the secret"), readable);
            let reply = find_reply(store.as_ref(), &claim).await;
            assert!(matches!(reply.content, Content::Json(text) if text.contains("the secret")));
        }
    }

    #[tokio::test]
    async fn only_json_and_empty_responses_are_stored() {
        let claim = claim(None);
        let bytes = Content::Bytes("text/plain", "x".into());
        assert!(claim.record(&reply(StatusCode::OK, bytes), false).is_err());
        let store = store();
        let empty = reply(StatusCode::NO_CONTENT, Content::Empty);
        keep(store.as_ref(), &claim, &empty, true).await.unwrap();
        let again = find_reply(store.as_ref(), &claim).await;
        assert!(matches!(again.content, Content::Empty));
    }
}
