//! Service tokens, with which a gateway authenticates its requests to services over HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::iam::SERVICE_TOKEN_LIFETIME;
use core_domain::kernel::{Clock, Secret, SessionId, SuiteService, Timestamp};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use moka::future::Cache;
use serde::Deserialize;
use serde_json::json;

use super::config::ConfigError;
use super::upstream::{Upstream, UpstreamError};
use super::vouching::UpstreamCredential;
use crate::kernel::bytes_body;

/// The path of the IAM endpoint that issues service tokens.
const PATH: &str = "/api/core/service-token";

/// Maximum size of a response of IAM, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// How long before its expiry a token is replaced. This is longer than it takes a service to authenticate a request.
const RENEW_BEFORE_EXPIRY: Duration = Duration::from_secs(60);

/// Minimum time between two attempts to renew a token.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of cached tokens for sessions.
const MAX_SESSION_TOKENS: u64 = 10_000;

/// Maximum time in which IAM must issue a token. Requests wait for it. It is shorter than the time in which the gateway must
/// resolve a credential, so that the upstream of the tokens learns of it.
const ISSUE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Requests service tokens from IAM and caches each until shortly before its expiry. The service key is therefore sent
/// to IAM only.
///
/// A gateway uses one instance for all upstreams. A request in a session uses a token for that session.
pub struct ServiceTokens {
    iam: Arc<dyn Upstream>,
    key: HeaderValue,
    clock: Arc<dyn Clock>,
    slots: BTreeMap<SuiteService, Slot>,
    session_slots: Cache<(SuiteService, SessionId), Arc<Slot>>,
}

/// The service and the session that a token is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenFor<'a> {
    /// The service that is called.
    pub(super) target: SuiteService,
    /// The session of the caller; `None` for calls without a session.
    pub(super) session: Option<&'a SessionId>,
}

/// The cached token for a service, or for a service and a session.
#[derive(Default)]
struct Slot {
    cached: Mutex<Option<CachedToken>>,
    /// The number of failed requests for a first token.
    failures: AtomicU64,
    /// Locked while a token is requested, so that IAM gets one request, however many requests wait for the token.
    renewal: tokio::sync::Mutex<()>,
}

/// A token and the times that decide about its renewal.
struct CachedToken {
    vouching: UpstreamCredential,
    expires_at: Timestamp,
    requested_at: Timestamp,
}

/// The state of a cached token at a given time.
enum TokenState {
    /// A token that need not be renewed yet.
    Fresh(UpstreamCredential),
    /// A valid token that is due for renewal.
    Due(UpstreamCredential),
    /// There is no valid token.
    Nothing,
}

impl Slot {
    fn cached_token(&self) -> MutexGuard<'_, Option<CachedToken>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token_state(&self, now: Timestamp) -> TokenState {
        let kept = self.cached_token();
        let Some(kept) = kept.as_ref().filter(|kept| now < kept.expires_at) else {
            return TokenState::Nothing;
        };
        let vouching = kept.vouching.clone();
        let is_due = now.plus(RENEW_BEFORE_EXPIRY) >= kept.expires_at;
        if is_due && now >= kept.requested_at.plus(MIN_RENEWAL_INTERVAL) {
            TokenState::Due(vouching)
        } else {
            TokenState::Fresh(vouching)
        }
    }

    fn record_attempt(&self, now: Timestamp) {
        if let Some(kept) = self.cached_token().as_mut() {
            kept.requested_at = now;
        }
    }
}

/// The response of IAM.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IssuedToken {
    token: String,
    expires_at: Timestamp,
}

impl ServiceTokens {
    /// Creates a cache of tokens from this IAM, which runs in this process or is reached over HTTP.
    ///
    /// # Errors
    /// [`ConfigError`] if `service_key` is not a valid service key.
    pub fn new(
        iam: impl Upstream + 'static,
        service_key: &Secret,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        let slots = SuiteService::ALL.iter();
        Ok(Self {
            iam: Arc::new(iam),
            key: UpstreamCredential::from_service_key(service_key)?.authorization,
            clock,
            slots: slots.map(|service| (*service, Slot::default())).collect(),
            session_slots: Cache::builder()
                .max_capacity(MAX_SESSION_TOKENS)
                .time_to_idle(SERVICE_TOKEN_LIFETIME)
                .build(),
        })
    }

    /// Returns a valid token. If IAM fails to issue a new one, the previous token is used until it expires.
    ///
    /// # Errors
    /// [`UpstreamError`] if there is no valid token.
    pub(super) async fn get(
        &self,
        wanted: TokenFor<'_>,
    ) -> Result<UpstreamCredential, UpstreamError> {
        let target = wanted.target;
        if let Some(session) = wanted.session {
            let slot = self
                .session_slots
                .get_with((target, session.clone()), async { Arc::<Slot>::default() });
            return self.get_from_slot(slot.await.as_ref(), wanted).await;
        }
        let slot = self.slots.get(&target);
        let slot = slot.ok_or_else(|| UpstreamError::Broken(format!("no slot for {target}")))?;
        self.get_from_slot(slot, wanted).await
    }

    async fn get_from_slot(
        &self,
        slot: &Slot,
        wanted: TokenFor<'_>,
    ) -> Result<UpstreamCredential, UpstreamError> {
        let now = self.clock.now();
        match slot.token_state(now) {
            TokenState::Fresh(vouching) => Ok(vouching),
            TokenState::Due(old) => match slot.renewal.try_lock() {
                Ok(_renewing) => Ok(self.renew(slot, wanted, now, old).await),
                Err(_) => Ok(old),
            },
            TokenState::Nothing => self.get_first(slot, wanted).await,
        }
    }

    /// Returns a new token, or the old one if IAM does not issue any.
    async fn renew(
        &self,
        slot: &Slot,
        wanted: TokenFor<'_>,
        now: Timestamp,
        old: UpstreamCredential,
    ) -> UpstreamCredential {
        slot.record_attempt(now);
        match self.issue(slot, wanted, now).await {
            Ok(new) => new,
            Err(error) => {
                tracing::warn!(%error, "IAM issued no new service token; the previous one remains in use");
                old
            }
        }
    }

    /// Requests a token when there is no valid one. Concurrent callers wait and get the same outcome.
    async fn get_first(
        &self,
        slot: &Slot,
        wanted: TokenFor<'_>,
    ) -> Result<UpstreamCredential, UpstreamError> {
        let failures = slot.failures.load(Ordering::Acquire);
        let _renewing = slot.renewal.lock().await;
        let now = self.clock.now();
        if let TokenState::Fresh(vouching) | TokenState::Due(vouching) = slot.token_state(now) {
            return Ok(vouching);
        }
        if slot.failures.load(Ordering::Acquire) != failures {
            let problem = "IAM just failed to issue a service token";
            return Err(UpstreamError::Unavailable(problem.to_owned()));
        }
        let issued = self.issue(slot, wanted, now).await;
        if issued.is_err() {
            slot.failures.fetch_add(1, Ordering::Release);
        }
        issued
    }

    /// Requests a token from IAM and caches it.
    async fn issue(
        &self,
        slot: &Slot,
        wanted: TokenFor<'_>,
        now: Timestamp,
    ) -> Result<UpstreamCredential, UpstreamError> {
        let asked = tokio::time::timeout(ISSUE_TIMEOUT, self.request_token(wanted, now));
        let late = |_| {
            self.iam.report_timeout();
            UpstreamError::Unavailable("IAM did not respond in time".to_owned())
        };
        let new = asked.await.map_err(late)??;
        let vouching = new.vouching.clone();
        *slot.cached_token() = Some(new);
        Ok(vouching)
    }

    async fn request_token(
        &self,
        wanted: TokenFor<'_>,
        now: Timestamp,
    ) -> Result<CachedToken, UpstreamError> {
        let mut body =
            json!({ "serviceId": SuiteService::Gateway, "targetService": wanted.target });
        if let Some(session) = wanted.session {
            body["sessionId"] = json!(session);
        }
        let request = Request::post(PATH)
            .header(AUTHORIZATION, self.key.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(bytes_body(body.to_string()))
            .map_err(|error| UpstreamError::Broken(error.to_string()))?;
        let answer = self.iam.send(request).await?;
        if answer.status() != StatusCode::OK {
            let status = answer.status();
            let problem = format!("IAM issued no service token: {status}");
            return Err(UpstreamError::Unavailable(problem));
        }
        let body = Limited::new(answer.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await;
        let body = body.map_err(|error| UpstreamError::Broken(error.to_string()))?;
        let issued: IssuedToken = serde_json::from_slice(&body.to_bytes())
            .map_err(|_| UpstreamError::Broken("IAM returned no service token".to_owned()))?;
        let vouching = UpstreamCredential::from_secret(&issued.token)
            .map_err(|error| UpstreamError::Broken(error.to_string()))?;
        Ok(CachedToken {
            vouching,
            expires_at: issued.expires_at,
            requested_at: now,
        })
    }
}

// Must not write tokens or the key into logs.
impl std::fmt::Debug for ServiceTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceTokens")
            .field("iam", &self.iam)
            .finish_non_exhaustive()
    }
}
