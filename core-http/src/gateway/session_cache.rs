//! A cache of resolved credentials with a short time-to-live.

use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::Credential;
use core_domain::kernel::{Clock, Timestamp};
use moka::future::Cache;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::authority::{Authority, AuthorityError, ResolvedCredential};
use super::invalidate::{Invalidate, InvalidationLog};
use crate::kernel::TokenDigest;
use crate::kernel::metrics::{Counter, Definition, Metrics, Sample};

/// Maximum number of entries in the cache.
const CAPACITY: u64 = 10_000;

/// Maximum time-to-live of a rejected credential.
const NEGATIVE_TTL: Duration = Duration::from_secs(1);

/// Maximum number of look-ups for one request. A look-up is repeated if its result was invalidated before it could be
/// used.
const MAX_ATTEMPTS: u32 = 8;

const LOOKUPS: Definition<1> = Definition {
    name: "core_session_cache_lookups_total",
    help: "Look-ups of credentials in the session cache of the gateway. A miss asks IAM.",
    labels: ["outcome"],
};

const ENTRIES: Definition<0> = Definition {
    name: "core_session_cache_entries",
    help: "Entries in the session cache of the gateway, including expired ones that are not removed yet.",
    labels: [],
};

/// The result of a look-up. `Ok(None)`: the credential is not valid.
type Answer = Result<Option<ResolvedCredential>, AuthorityError>;

/// A look-up in progress, or its result.
#[derive(Debug)]
struct CacheEntry {
    /// The epoch of the [`InvalidationLog`] in which the result was requested.
    epoch: u64,
    requested_at: Instant,
    answer: OnceCell<Answer>,
}

/// Caches the results of an [`Authority`]. The keys are digests of tokens, never tokens.
#[derive(Debug)]
pub(crate) struct SessionCache {
    authority: Arc<dyn Authority>,
    clock: Arc<dyn Clock>,
    invalidate: Invalidate,
    ttl: Duration,
    timeout: Duration,
    entries: Cache<Key, Arc<CacheEntry>>,
    hits: Counter,
    misses: Counter,
}

/// The key of a credential: its kind and the digest of its secret.
type Key = (u8, TokenDigest);

fn key(credential: &Credential, digest: &TokenDigest) -> Key {
    let kind = match credential {
        Credential::Bearer(_) => b'b',
        Credential::ApiKey(_) => b'k',
    };
    (kind, *digest)
}

fn is_expired(resolved: &ResolvedCredential, now: Timestamp) -> bool {
    resolved.expires_at.is_some_and(|end| end <= now)
}

impl SessionCache {
    pub(crate) fn new(
        authority: Arc<dyn Authority>,
        clock: Arc<dyn Clock>,
        ttl: Duration,
        timeout: Duration,
        metrics: &Metrics,
    ) -> Self {
        let entries = Cache::builder()
            .max_capacity(CAPACITY)
            .time_to_live(ttl.max(Duration::from_millis(1)))
            .build();
        let measured: Cache<Key, Arc<CacheEntry>> = entries.clone();
        metrics.observe_gauge(&ENTRIES, move || {
            // Exact, because the cache has at most 10,000 entries.
            vec![Sample::new([], measured.entry_count() as f64)]
        });
        let lookups = metrics.counters(&LOOKUPS);
        Self {
            authority,
            clock,
            invalidate: Invalidate::default(),
            ttl,
            timeout,
            entries,
            hits: lookups.with(["hit"]),
            misses: lookups.with(["miss"]),
        }
    }

    pub(crate) fn invalidate(&self) -> Invalidate {
        self.invalidate.clone()
    }

    fn log(&self) -> &InvalidationLog {
        self.invalidate.log()
    }

    /// Resolves a credential, given with the digest of its secret. Concurrent requests with the same credential share a
    /// look-up unless something was invalidated since it began.
    pub(crate) async fn resolve(
        &self,
        credential: &Credential,
        digest: &TokenDigest,
    ) -> Result<ResolvedCredential, AuthorityError> {
        let key = key(credential, digest);
        for _ in 0..MAX_ATTEMPTS {
            // The futures of a cache miss are boxed, so that they do not enlarge the future of every request.
            let entry = match self.usable_entry(&key).await {
                Some(entry) => {
                    self.hits.increment();
                    entry
                }
                None => {
                    self.misses.increment();
                    Box::pin(self.entry(key)).await
                }
            };
            let answer = match entry.answer.get() {
                Some(answer) => answer,
                None => {
                    let answer = entry
                        .answer
                        .get_or_init(|| self.resolve_uncached(credential));
                    Box::pin(answer).await
                }
            };
            let resolved = answer.as_ref().map_err(Clone::clone)?;
            // The result may have been invalidated during the look-up.
            if !self.log().is_stale(entry.epoch, resolved.as_ref()) {
                return resolved.clone().ok_or(AuthorityError::Refused);
            }
        }
        Err(AuthorityError::Unavailable(
            "each answer was invalidated before it could be used".to_owned(),
        ))
    }

    /// Returns the cached entry of the key if it is usable.
    async fn usable_entry(&self, key: &Key) -> Option<Arc<CacheEntry>> {
        if self.ttl.is_zero() {
            return None;
        }
        let entry = self.entries.get(key).await?;
        self.is_usable(&entry).then_some(entry)
    }

    /// Returns the entry that another request has just created for the key, or a new one.
    async fn entry(&self, key: Key) -> Arc<CacheEntry> {
        if self.ttl.is_zero() {
            return Arc::new(self.new_entry());
        }
        let replaced = self.entries.entry(key);
        let new = async { Arc::new(self.new_entry()) };
        let entry = replaced.or_insert_with_if(new, |entry| !self.is_usable(entry));
        entry.await.into_value()
    }

    fn new_entry(&self) -> CacheEntry {
        CacheEntry {
            epoch: self.log().epoch(),
            requested_at: Instant::now(),
            answer: OnceCell::new(),
        }
    }

    fn is_usable(&self, entry: &CacheEntry) -> bool {
        let age = entry.requested_at.elapsed();
        match entry.answer.get() {
            // The subjects are not known yet, so the look-up is shared only while nothing at all was invalidated.
            None => age < self.ttl && entry.epoch == self.log().epoch(),
            Some(Ok(Some(resolved))) => {
                age < self.ttl
                    && !is_expired(resolved, self.clock.now())
                    && !self.log().is_stale(entry.epoch, Some(resolved))
            }
            Some(Ok(None)) => {
                age < self.ttl.min(NEGATIVE_TTL) && !self.log().is_stale(entry.epoch, None)
            }
            Some(Err(_)) => false,
        }
    }

    /// Resolves a credential without the cache. `Ok(None)` means that it is not valid, which is cached, unlike a
    /// failure.
    async fn resolve_uncached(&self, credential: &Credential) -> Answer {
        let answer = tokio::time::timeout(self.timeout, self.authority.resolve(credential)).await;
        let answer = answer.unwrap_or_else(|_| {
            self.authority.report_timeout();
            Err(AuthorityError::Unavailable("no answer in time".to_owned()))
        });
        match answer {
            Ok(resolved) if is_expired(&resolved, self.clock.now()) => Ok(None),
            Ok(resolved) => Ok(Some(resolved)),
            Err(AuthorityError::Refused) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use core_domain::kernel::{Caller, Secret};
    use core_domain::testing::ManualClock;

    use super::*;

    /// An authority that knows every credential.
    #[derive(Debug)]
    struct TrustingAuthority;

    #[async_trait]
    impl Authority for TrustingAuthority {
        async fn resolve(&self, _: &Credential) -> Result<ResolvedCredential, AuthorityError> {
            Ok(ResolvedCredential {
                caller: Arc::new(Caller::Anonymous),
                suspended: false,
                expires_at: None,
                requests_per_minute: None,
            })
        }
    }

    #[tokio::test]
    async fn line_25_the_number_of_cached_identities_is_bounded() {
        let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
        // A longer time than any gateway has, so that no entry expires during the test.
        let hour = Duration::from_secs(3_600);
        let cache = SessionCache::new(
            Arc::new(TrustingAuthority),
            clock,
            hour,
            hour,
            &Metrics::new(),
        );
        for n in 0..CAPACITY + 2_000 {
            let token = format!("session-{n}");
            let digest = TokenDigest::of(&token);
            let credential = Credential::Bearer(Secret::new(token));
            assert!(cache.resolve(&credential, &digest).await.is_ok());
        }
        cache.entries.run_pending_tasks().await;
        let count = cache.entries.entry_count();
        assert!(count > 0 && count <= CAPACITY, "{count}");
    }
}
