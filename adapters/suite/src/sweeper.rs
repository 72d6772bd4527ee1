//! Removes expired records, and creates the next signing keys: short-lived records every few minutes, all others at the start
//! and once a day.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Cipher, Context, Result};
use core_domain::port::{Store, UnitOfWork, transact};
use core_domain::use_case::iam::{api_key, oauth, passkey, service_token, session, verification};
use core_domain::use_case::shared::webhook::remove_ended_deliveries;
use core_domain::use_case::shared::{remove_expired_answers, remove_expired_mail_quotas};
use core_http::kernel::App;
use tokio::task::JoinHandle;

use crate::uploads;

const DAILY: Duration = Duration::from_secs(24 * 60 * 60);

/// Time between two sweeps of short-lived records.
const OFTEN: Duration = Duration::from_secs(5 * 60);

/// Removes a slice of records of one kind. Returns their number; 0 means that none is left.
type RemoveSlice =
    for<'u> fn(&'u mut dyn UnitOfWork) -> Pin<Box<dyn Future<Output = Result<u64>> + Send + 'u>>;

/// Records that anybody can create many of, and that are of no use after minutes.
const SHORT_LIVED: [(&str, RemoveSlice); 6] = [
    ("links", |uow| Box::pin(verification::remove_expired(uow))),
    ("sign-ins", |uow| {
        Box::pin(session::remove_expired_challenges(uow))
    }),
    ("passkey challenges", |uow| {
        Box::pin(passkey::remove_expired_passkey_challenges(uow))
    }),
    ("device codes", |uow| {
        Box::pin(oauth::remove_expired_devices(uow))
    }),
    ("mail quotas", |uow| {
        Box::pin(remove_expired_mail_quotas(uow))
    }),
    ("tokens", |uow| Box::pin(oauth::remove_expired_tokens(uow))),
];

/// Records that last for days.
const LONG_LIVED: [(&str, RemoveSlice); 2] = [
    ("trusted devices", |uow| {
        Box::pin(session::remove_expired_trust(uow))
    }),
    ("sessions", |uow| Box::pin(session::remove_expired(uow))),
];

/// Sweeps until it is dropped.
#[derive(Debug)]
pub(crate) struct Sweeper(JoinHandle<()>);

impl Sweeper {
    /// Starts sweeping on the current tokio runtime.
    pub(crate) fn start(app: Arc<App>) -> Self {
        Self(tokio::spawn(async move {
            tokio::join!(sweep_daily(&app), sweep_often(app.store.as_ref()));
        }))
    }

    /// Ends it where it is; gives the store back before it returns.
    pub(crate) async fn stop(mut self) {
        self.0.abort();
        // It ends by being cut off.
        let _ = (&mut self.0).await;
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn sweep_daily(app: &App) {
    let store = app.store.as_ref();
    let cx = Context::system(Arc::clone(&app.entropy));
    loop {
        match uploads::remove_orphaned(store, app.blobs.as_ref()).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "orphaned uploads were removed"),
            Err(error) => tracing::warn!(?error, "old uploads could not be looked at"),
        }
        if let Err(error) = expired_keys(store).await {
            tracing::warn!(?error, "expired idempotency keys could not be removed");
        }
        remove_expired(store, &LONG_LIVED).await;
        if let Err(error) = forgotten_keys(store).await {
            tracing::warn!(?error, "expired API keys could not be removed");
        }
        if let Err(error) = ended_deliveries(store).await {
            tracing::warn!(?error, "old messages to webhooks could not be removed");
        }
        if let Err(error) = rotated_keys(&cx, store, &app.cipher).await {
            tracing::warn!(
                ?error,
                "the keys of service tokens could not be looked after"
            );
        }
        tokio::time::sleep(DAILY).await;
    }
}

async fn sweep_often(store: &dyn Store) {
    loop {
        remove_expired(store, &SHORT_LIVED).await;
        tokio::time::sleep(OFTEN).await;
    }
}

/// Removes the expired records of each kind. A kind that fails does not stop the others.
async fn remove_expired(store: &dyn Store, kinds: &[(&str, RemoveSlice)]) {
    for (kind, remove) in kinds {
        if let Err(error) = remove_slices(store, *remove).await {
            tracing::warn!(?error, kind, "expired records could not be removed");
        }
    }
}

/// Removes all slices, each in a unit of its own.
async fn remove_slices(store: &dyn Store, remove: RemoveSlice) -> Result<u64> {
    let mut removed = 0;
    loop {
        match transact(store, |uow, _| remove(uow)).await? {
            0 => return Ok(removed),
            some => removed += some,
        }
    }
}

async fn expired_keys(store: &dyn Store) -> Result<u64> {
    transact(store, |uow, _| Box::pin(remove_expired_answers(uow))).await
}

async fn forgotten_keys(store: &dyn Store) -> Result<u64> {
    transact(store, |uow, _| Box::pin(api_key::remove_forgotten(uow))).await
}

async fn ended_deliveries(store: &dyn Store) -> Result<u64> {
    transact(store, |uow, _| Box::pin(remove_ended_deliveries(uow))).await
}

/// Makes the next key in time, and removes those nobody needs.
async fn rotated_keys(cx: &Context, store: &dyn Store, cipher: &Cipher) -> Result<u64> {
    transact(store, |uow, _| {
        Box::pin(service_token::look_after_keys(cx, uow, cipher))
    })
    .await
}

#[cfg(test)]
mod tests {
    use core_domain::iam::{AccessToken, AccessTokenQuery, SigningKeyQuery, TokenHash};
    use core_domain::kernel::SessionId;
    use core_domain::kernel::Timestamp;
    use core_domain::port::{Mode, Within};
    use core_domain::shared::IdempotencyKey;
    use core_domain::testing::{ManualClock, RecordKey, SeededEntropy};
    use core_storage::memory::{MemoryConfig, open};

    use super::*;

    #[tokio::test]
    async fn an_idempotency_key_is_forgotten_when_it_has_expired_and_not_before() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [1; 32].into(),
        });
        transact(store.as_ref(), |uow, _| {
            Box::pin(async move {
                let now = uow.now().await?;
                let key = IdempotencyKey {
                    id: "key".to_owned(),
                    request_hash: String::new(),
                    status: 201,
                    headers: Vec::new(),
                    body: String::new(),
                    needs_proof: false,
                    created_at: now,
                    expires_at: now.plus(Duration::from_secs(60)),
                };
                let repositories = uow.repositories(RecordKey::for_tests());
                repositories.idempotency_keys().insert(key).await?;
                Ok(())
            })
        })
        .await
        .unwrap();
        clock.advance(Duration::from_secs(60));
        assert_eq!(expired_keys(store.as_ref()).await.unwrap(), 0);
        clock.advance(Duration::from_secs(1));
        assert_eq!(expired_keys(store.as_ref()).await.unwrap(), 1);
        assert_eq!(expired_keys(store.as_ref()).await.unwrap(), 0);
    }

    fn in_memory() -> (Arc<ManualClock>, Arc<dyn Store>) {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [1; 32].into(),
        });
        (clock, store)
    }

    /// Inserts access tokens that expire one second after another, the first one after 900 seconds.
    async fn insert_tokens(store: &dyn Store, number: u64) {
        transact(store, |uow, _| {
            Box::pin(async move {
                let now = uow.now().await?;
                for nth in 0..number {
                    let token = AccessToken {
                        token_hash: TokenHash::of(&nth.to_string()),
                        session_id: SessionId::generate(now, &SeededEntropy::new(1)),
                        created_at: now,
                        expires_at: now.plus(Duration::from_secs(900 + nth)),
                    };
                    let repositories = uow.repositories(RecordKey::for_tests());
                    repositories.access_tokens().insert(token).await?;
                }
                Ok(())
            })
        })
        .await
        .unwrap();
    }

    async fn count_tokens(store: &dyn Store) -> u64 {
        let mut uow = store.begin(Mode::Read).await.unwrap();
        let tokens = uow.repositories(RecordKey::for_tests()).access_tokens();
        let all = AccessTokenQuery::ExpiredAt(Timestamp::from_seconds(4_000_000_000));
        tokens.count(Within::Installation, &all).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn short_lived_records_are_removed_within_minutes_of_their_end_and_not_before() {
        let (clock, store) = in_memory();
        insert_tokens(store.as_ref(), 2).await;
        let sweeping = Arc::clone(&store);
        let sweeper = Sweeper(tokio::spawn(
            async move { sweep_often(sweeping.as_ref()).await },
        ));
        for (second, left) in [(899, 2), (900, 1), (901, 0)] {
            clock.set(Timestamp::from_seconds(1_800_000_000 + second));
            // The sweep in the middle of this time sees the clock as it is now.
            tokio::time::sleep(OFTEN + Duration::from_secs(1)).await;
            assert_eq!(count_tokens(store.as_ref()).await, left, "{second}");
        }
        sweeper.stop().await;
    }

    #[tokio::test]
    async fn many_expired_records_are_removed_in_slices_of_a_thousand() {
        let (clock, store) = in_memory();
        insert_tokens(store.as_ref(), 2_500).await;
        clock.advance(DAILY);
        let mut slices = Vec::new();
        for _ in 0..4 {
            let slice = transact(store.as_ref(), |uow, _| {
                Box::pin(oauth::remove_expired_tokens(uow))
            });
            slices.push(slice.await.unwrap());
        }
        assert_eq!(slices, [1_000, 1_000, 500, 0]);
    }

    #[tokio::test]
    async fn the_sweep_of_each_day_keeps_keys_coming_and_going() {
        let (clock, store) = in_memory();
        let entropy = Arc::new(SeededEntropy::new(1));
        let (cx, cipher) = (
            Context::system(entropy.clone()),
            Cipher::new([1; 32], entropy),
        );
        assert_eq!(rotated_keys(&cx, store.as_ref(), &cipher).await.unwrap(), 0);
        transact(store.as_ref(), |uow, _| {
            Box::pin(service_token::make_next_key(&cx, uow, &cipher))
        })
        .await
        .unwrap();
        let mut removed = 0;
        for _ in 0..100 {
            removed += rotated_keys(&cx, store.as_ref(), &cipher).await.unwrap();
            let mut uow = store.begin(Mode::Read).await.unwrap();
            let keys = uow.repositories(RecordKey::for_tests()).signing_keys();
            let all = keys.list(Within::Installation, &SigningKeyQuery::All, 10);
            assert!((1..=2).contains(&all.await.unwrap().len()));
            clock.advance(DAILY);
        }
        assert_eq!(removed, 3);
    }
}
