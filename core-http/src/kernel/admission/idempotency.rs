//! `Idempotency-Key`: a write that is sent twice happens once, and both get the same answer.
//!
//! A key belongs to its caller and service. Method, documented path, query and body are the request: another request under the
//! same key is refused. The answer is a row in the very unit of work of the change; who sends the same key while the first
//! request still runs is asked to wait.
//!
//! A stored answer is shown only to a caller who would be let in now: see [`replay`](super::replay).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use core_domain::access::ensure_fresh;
use core_domain::kernel::{Caller, Cipher, Code, Error, Result, StoreError, hex};
use core_domain::port::UnitOfWork;
use core_domain::shared::{IdempotencyKey, KEPT_FOR};
use core_domain::use_case::shared::{find_answer, store_answer};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::kernel::answer::envelope::status_of;
use crate::kernel::answer::reply::{Content, Reply};
use crate::kernel::endpoint::context::Cx;
use crate::kernel::request::header_names;

/// What a key must look like.
pub(crate) const KEY_PATTERN: &str = "^[!-~]{1,255}$";

const HEADER: &str = "idempotency-key";

/// The keys of writes that run in this process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<HashSet<String>>>);

/// The owner of a key.
pub(crate) struct KeyScope<'a> {
    pub(crate) service: &'static str,
    pub(crate) caller: &'a Caller,
}

impl KeyScope<'_> {
    /// The id of a key in this scope.
    fn id_of(&self, key: &str) -> String {
        let caller = self.caller;
        hash(&[caller.kind(), caller.actor_id(), self.service, key])
    }
}

/// The right to run the write of one key; given back when dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    id: String,
    /// What identifies the request under its key.
    request_hash: String,
    /// Set where stored answers hold secrets.
    cipher: Option<Cipher>,
    running: InFlight,
}

/// An answer as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredAnswer {
    status: StatusCode,
    headers: Vec<(String, String)>,
    body: String,
    needs_proof: bool,
}

/// A stored answer that belongs to the request.
pub(crate) struct FoundAnswer {
    pub(crate) reply: Reply,
    /// Whether the caller must have a fresh proof to see it.
    pub(crate) needs_proof: bool,
}

impl Claim {
    /// Claims the key of a request. `request` is its method, documented path, query string and the canonical JSON of its body.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` when the key's first request still runs.
    pub(crate) fn of(
        running: &InFlight,
        scope: &KeyScope<'_>,
        key: &str,
        request: &[&str],
        cipher: Option<Cipher>,
    ) -> Result<Self> {
        let id = scope.id_of(key);
        let mut keys = running.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !keys.insert(id.clone()) {
            return Err(in_progress());
        }
        Ok(Self {
            id,
            request_hash: hash(request),
            cipher,
            running: running.clone(),
        })
    }

    /// The answer this key already has.
    ///
    /// # Errors
    /// `IDEMPOTENCY_KEY_REUSED` when it was given to another request.
    pub(crate) async fn find(&self, uow: &mut dyn UnitOfWork) -> Result<Option<FoundAnswer>> {
        let Some(stored) = find_answer(uow, &self.id).await? else {
            return Ok(None);
        };
        if stored.request_hash != self.request_hash {
            return Err(Error::refused(
                Code::IdempotencyKeyReused,
                "This idempotency key was used with another request.",
            ));
        }
        Ok(Some(FoundAnswer {
            reply: self.read(&stored)?,
            needs_proof: stored.needs_proof,
        }))
    }

    /// Tells whether the answers of the row hold secrets.
    pub(crate) const fn is_secret(&self) -> bool {
        self.cipher.is_some()
    }

    /// The answer as it will be stored.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for an answer that cannot be stored.
    pub(crate) fn record(&self, reply: &Reply, needs_proof: bool) -> Result<StoredAnswer> {
        Ok(StoredAnswer {
            status: reply.status,
            headers: stored_headers(reply),
            body: self.sealed(reply)?,
            needs_proof,
        })
    }

    /// Stores the answer in the unit of the change.
    ///
    /// # Errors
    /// `IDEMPOTENCY_IN_PROGRESS` when another process has answered the key in the meantime: the change is not made twice.
    pub(crate) async fn store(&self, uow: &mut dyn UnitOfWork, answer: StoredAnswer) -> Result<()> {
        if self.store_unless_known(uow, answer).await? {
            Ok(())
        } else {
            Err(in_progress())
        }
    }

    /// Stores a refusal, unless another process has answered the key in the meantime: that answer stands.
    pub(crate) async fn store_refusal(
        &self,
        uow: &mut dyn UnitOfWork,
        refusal: StoredAnswer,
    ) -> Result<()> {
        self.store_unless_known(uow, refusal).await.map(drop)
    }

    async fn store_unless_known(
        &self,
        uow: &mut dyn UnitOfWork,
        answer: StoredAnswer,
    ) -> Result<bool> {
        let now = uow.now().await?;
        let answer = IdempotencyKey {
            id: self.id.clone(),
            request_hash: self.request_hash.clone(),
            status: i64::from(answer.status.as_u16()),
            headers: answer.headers,
            body: answer.body,
            needs_proof: answer.needs_proof,
            created_at: now,
            expires_at: now.plus(KEPT_FOR),
        };
        store_answer(uow, answer).await
    }

    fn sealed(&self, reply: &Reply) -> Result<String> {
        let text = match &reply.content {
            Content::Empty => return Ok(String::new()),
            Content::Json(text) => text,
            Content::Bytes(..) | Content::Stream(..) => {
                return Err(Error::Internal("only JSON answers are kept".to_owned()));
            }
        };
        match &self.cipher {
            Some(cipher) => cipher.seal(&self.id, text),
            None => Ok(text.clone()),
        }
    }

    fn read(&self, stored: &IdempotencyKey) -> Result<Reply> {
        let status = u16::try_from(stored.status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok())
            .ok_or_else(|| Error::Internal(format!("stored status {} is none", stored.status)))?;
        let content = match (&self.cipher, stored.body.as_str()) {
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
        let mut keys = self
            .running
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        keys.remove(&self.id);
    }
}

/// The headers of an answer as they are stored; cookies are not.
fn stored_headers(reply: &Reply) -> Vec<(String, String)> {
    let etag = reply.etag.iter();
    let etag = etag.map(|etag| (header::ETAG.to_string(), etag.clone()));
    let others = reply.headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        (name != header::SET_COOKIE).then(|| (name.to_string(), value.to_owned()))
    });
    etag.chain(others).collect()
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
pub(crate) fn key_of(headers: &HeaderMap) -> Result<Option<&str>> {
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

/// How far a write came, for whoever stores its refusal.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    was_let_in: AtomicBool,
    needs_proof: AtomicBool,
}

impl Progress {
    /// Begins again: the unit is run once more.
    pub(crate) fn reset(&self) {
        self.was_let_in.store(false, Ordering::Relaxed);
        self.needs_proof.store(false, Ordering::Relaxed);
    }

    /// Notes that the caller was let in: a refusal that follows belongs to the request.
    pub(crate) fn note_let_in(&self) {
        self.was_let_in.store(true, Ordering::Relaxed);
    }

    /// Notes whether the unit asked for a fresh proof.
    pub(crate) fn note_unit(&self, uow: &mut dyn UnitOfWork) {
        let needs_proof = uow.effects().needs_fresh_proof();
        self.needs_proof.store(needs_proof, Ordering::Relaxed);
    }

    pub(crate) fn was_let_in(&self) -> bool {
        self.was_let_in.load(Ordering::Relaxed)
    }

    pub(crate) fn needs_proof(&self) -> bool {
        self.needs_proof.load(Ordering::Relaxed)
    }
}

/// Finds the stored answer of a request whose scope was opened. `INVALID_STATE` may be the request's own doing, as after the
/// deletion of a platform. So is what a row that ends access no longer finds.
///
/// # Errors
/// The refusal of the scope; `IDEMPOTENCY_KEY_REUSED`; `STEP_UP_REQUIRED` if the first request asked for a fresh proof.
pub(crate) async fn find_stored<S>(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    scope: Result<S>,
) -> Result<(Option<FoundAnswer>, Result<S>)> {
    let is_shown = match &scope {
        Ok(_) | Err(Error::InvalidState { .. }) => true,
        Err(error) => {
            cx.ends_access && matches!(error.code(), Code::NotFound | Code::NoActiveOrganization)
        }
    };
    let claim = cx.claim.as_ref();
    let Some(claim) = claim.filter(|_| is_shown) else {
        return Ok((None, scope));
    };
    let found = claim.find(uow).await?;
    if found.as_ref().is_some_and(|found| found.needs_proof) {
        ensure_fresh(cx, uow).await?;
    }
    Ok((found, scope))
}

/// Tells whether the outcome of the repeated handler is the answer in place of the stored one.
pub(crate) fn withholds(cx: &Cx, error: &Error, claim: &Claim) -> bool {
    match error {
        Error::Unauthorized | Error::Forbidden => true,
        // The unit is to be run again, or the store is down.
        Error::Store(StoreError::Conflict { .. } | StoreError::Stale { .. }) => false,
        Error::Store(_) => true,
        // Whoever lost sight of a thing is not shown a secret of it, or anything where the row calls that a refusal.
        Error::NotFound(_) => claim.is_secret() || status_of(cx.not_found) == StatusCode::FORBIDDEN,
        Error::Refused { code, .. } => match status_of(*code) {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => true,
            StatusCode::NOT_FOUND => claim.is_secret(),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
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

    /// The claim that a process of its own makes for the same request.
    fn claim(cipher: Option<Cipher>) -> Claim {
        let caller = Caller::Service {
            name: "key".to_owned(),
        };
        let scope = KeyScope {
            service: "test",
            caller: &caller,
        };
        let request = ["POST", "/a", "", "{}"];
        Claim::of(&InFlight::default(), &scope, "k1", &request, cipher).unwrap()
    }

    fn json(status: StatusCode, text: &str) -> Reply {
        reply(status, Content::Json(text.to_owned()))
    }

    /// Stores the answer as that of a change, or as a refusal.
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

    async fn replayed(store: &dyn Store, claim: &Claim) -> Reply {
        let mut uow = store.begin(Mode::Read).await.unwrap();
        let found = claim.find(uow.as_mut()).await;
        found.unwrap().unwrap().reply
    }

    #[tokio::test]
    async fn the_answer_of_another_process_stands() {
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
        let reply = replayed(store.as_ref(), &claim).await;
        assert_eq!(reply.status, StatusCode::CREATED);
        assert!(matches!(reply.content, Content::Json(text) if text == "1"));
    }

    #[tokio::test]
    async fn a_secret_answer_is_read_again_and_unreadable_in_the_store() {
        let cipher = Cipher::new([1; 32], Arc::new(SeededEntropy::new(1)));
        for (cipher, readable) in [(Some(cipher), false), (None, true)] {
            let (store, claim) = (store(), claim(cipher));
            let answer = json(StatusCode::CREATED, "\"the secret\"");
            keep(store.as_ref(), &claim, &answer, true).await.unwrap();
            let mut uow = store.begin(Mode::Read).await.unwrap();
            let stored = find_answer(uow.as_mut(), &claim.id).await.unwrap().unwrap();
            assert_eq!(stored.body.contains("the secret"), readable);
            let reply = replayed(store.as_ref(), &claim).await;
            assert!(matches!(reply.content, Content::Json(text) if text.contains("the secret")));
        }
    }

    #[tokio::test]
    async fn what_is_no_json_is_not_stored_and_nothing_is_stored_as_nothing() {
        let claim = claim(None);
        let bytes = Content::Bytes("text/plain", "x".into());
        assert!(claim.record(&reply(StatusCode::OK, bytes), false).is_err());
        let store = store();
        let empty = reply(StatusCode::NO_CONTENT, Content::Empty);
        keep(store.as_ref(), &claim, &empty, true).await.unwrap();
        let again = replayed(store.as_ref(), &claim).await;
        assert!(matches!(again.content, Content::Empty));
    }
}
