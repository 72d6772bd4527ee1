//! Remembering for a moment what IAM said about a credential.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use core_domain::gateway::Credential;
use core_domain::kernel::{Clock, Timestamp};
use moka::future::Cache;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::authority::{Authority, AuthorityError, Resolved};

/// How many answers are remembered at the most.
const CAPACITY: u64 = 10_000;

/// How long "not valid" is remembered, at the most.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Voids what a gateway remembers about credentials. For whoever learns first that a session ended or a platform was
/// suspended or restored.
///
/// One number counts the voidings and is part of every key: an answer that was asked for before is never used after,
/// even when it arrives later.
#[derive(Clone, Debug, Default)]
pub struct Invalidate(Arc<AtomicU64>);

impl Invalidate {
    /// From now on every credential is looked up again.
    pub fn all(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn epoch(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

type Key = (u64, [u8; 32]);

#[derive(Clone, Debug)]
struct Remembered {
    /// `None` when the credential is not valid.
    resolved: Option<Resolved>,
    asked_at: Instant,
}

/// The [`Authority`] with a short memory. Tokens are never kept, only their digests.
#[derive(Debug)]
pub(crate) struct SessionCache {
    authority: Arc<dyn Authority>,
    clock: Arc<dyn Clock>,
    invalidate: Invalidate,
    ttl: Duration,
    timeout: Duration,
    answers: Cache<Key, Remembered>,
}

fn digest(credential: &Credential) -> [u8; 32] {
    let (kind, secret) = match credential {
        Credential::Bearer(secret) => (b'b', secret),
        Credential::ApiKey(secret) => (b'k', secret),
    };
    let mut digest = Sha256::new();
    digest.update([kind]);
    digest.update(secret.expose().as_bytes());
    digest.finalize().into()
}

fn ended(resolved: &Resolved, now: Timestamp) -> bool {
    resolved.expires_at.is_some_and(|end| end <= now)
}

impl SessionCache {
    pub(crate) fn new(
        authority: Arc<dyn Authority>,
        clock: Arc<dyn Clock>,
        ttl: Duration,
        timeout: Duration,
    ) -> Self {
        Self {
            authority,
            clock,
            invalidate: Invalidate::default(),
            ttl,
            timeout,
            answers: Cache::builder()
                .max_capacity(CAPACITY)
                .time_to_live(ttl.max(Duration::from_millis(1)))
                .build(),
        }
    }

    pub(crate) fn invalidate(&self) -> Invalidate {
        self.invalidate.clone()
    }

    /// Who the credential belongs to; asked at most once at a time for the same one.
    pub(crate) async fn resolve(
        &self,
        credential: &Credential,
    ) -> Result<Resolved, AuthorityError> {
        if self.ttl.is_zero() {
            return self.ask(credential).await?.ok_or(AuthorityError::Refused);
        }
        let key = (self.invalidate.epoch(), digest(credential));
        if let Some(remembered) = self.answers.get(&key).await
            && !self.is_fresh(&remembered)
        {
            self.answers.invalidate(&key).await;
        }
        let answer = self
            .answers
            .try_get_with(key, async {
                let asked_at = Instant::now();
                let resolved = self.ask(credential).await?;
                Ok::<_, AuthorityError>(Remembered { resolved, asked_at })
            })
            .await
            .map_err(|error: Arc<AuthorityError>| (*error).clone())?;
        answer.resolved.ok_or(AuthorityError::Refused)
    }

    fn is_fresh(&self, remembered: &Remembered) -> bool {
        let age = remembered.asked_at.elapsed();
        match &remembered.resolved {
            Some(resolved) => age < self.ttl && !ended(resolved, self.clock.now()),
            None => age < self.ttl.min(REFUSED_FOR),
        }
    }

    /// `Ok(None)` when the credential is not valid: unlike a failure, that may be remembered.
    async fn ask(&self, credential: &Credential) -> Result<Option<Resolved>, AuthorityError> {
        let answer = tokio::time::timeout(self.timeout, self.authority.resolve(credential))
            .await
            .map_err(|_| AuthorityError::Unavailable("no answer in time".to_owned()))?;
        match answer {
            Ok(resolved) if ended(&resolved, self.clock.now()) => Ok(None),
            Ok(resolved) => Ok(Some(resolved)),
            Err(AuthorityError::Refused) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
