//! Removes what time has made useless, and makes the keys of the days to come; at the start and once a day.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Cipher, Context, Result};
use core_domain::port::{Blobs, Store, transact};
use core_domain::use_case::iam::{api_key, oauth, passkey, service_token, session, verification};
use core_domain::use_case::shared::webhook::remove_ended_deliveries;
use core_domain::use_case::shared::{remove_expired_answers, remove_expired_mail_quotas};
use core_http::kernel::App;
use tokio::task::JoinHandle;

use crate::uploads;

const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// Sweeps until it is dropped.
#[derive(Debug)]
pub(crate) struct Sweeper(JoinHandle<()>);

impl Sweeper {
    /// Starts sweeping on the current tokio runtime.
    pub(crate) fn start(app: Arc<App>) -> Self {
        Self(tokio::spawn(async move {
            let (store, blobs): (&Arc<dyn Store>, &Arc<dyn Blobs>) = (&app.store, &app.blobs);
            let cx = Context::system(Arc::clone(&app.entropy));
            loop {
                match uploads::remove_orphaned(store.as_ref(), blobs.as_ref()).await {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "orphaned uploads were removed"),
                    Err(error) => tracing::warn!(?error, "old uploads could not be looked at"),
                }
                if let Err(error) = expired_keys(store.as_ref()).await {
                    tracing::warn!(?error, "expired idempotency keys could not be removed");
                }
                if let Err(error) = expired_tokens(store.as_ref()).await {
                    tracing::warn!(?error, "expired tokens could not be removed");
                }
                if let Err(error) = ended_sessions(store.as_ref()).await {
                    tracing::warn!(?error, "expired sessions and keys could not be removed");
                }
                if let Err(error) = ended_deliveries(store.as_ref()).await {
                    tracing::warn!(?error, "old messages to webhooks could not be removed");
                }
                if let Err(error) = rotated_keys(&cx, store.as_ref(), &app.cipher).await {
                    tracing::warn!(
                        ?error,
                        "the keys of service tokens could not be looked after"
                    );
                }
                tokio::time::sleep(PERIOD).await;
            }
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

async fn expired_keys(store: &dyn Store) -> Result<u64> {
    transact(store, |uow, _| Box::pin(remove_expired_answers(uow))).await
}

async fn expired_tokens(store: &dyn Store) -> Result<u64> {
    let removed = transact(store, |uow, _| Box::pin(oauth::remove_expired(uow))).await?;
    let links = transact(store, |uow, _| Box::pin(verification::remove_expired(uow)));
    let removed = removed + links.await?;
    let waiting = transact(store, |uow, _| {
        Box::pin(session::remove_expired_challenges(uow))
    });
    let removed = removed + waiting.await?;
    let quotas = transact(store, |uow, _| Box::pin(remove_expired_mail_quotas(uow)));
    let removed = removed + quotas.await?;
    let trusted = transact(store, |uow, _| Box::pin(session::remove_expired_trust(uow)));
    let removed = removed + trusted.await?;
    let challenges = transact(store, |uow, _| {
        Box::pin(passkey::remove_expired_passkey_challenges(uow))
    });
    Ok(removed + challenges.await?)
}

async fn ended_deliveries(store: &dyn Store) -> Result<u64> {
    transact(store, |uow, _| Box::pin(remove_ended_deliveries(uow))).await
}

/// Removes sessions and API keys that nobody has used up or taken away.
async fn ended_sessions(store: &dyn Store) -> Result<u64> {
    let keys = transact(store, |uow, _| Box::pin(api_key::remove_forgotten(uow)));
    let mut removed = keys.await?;
    loop {
        match transact(store, |uow, _| Box::pin(session::remove_expired(uow))).await? {
            0 => return Ok(removed),
            some => removed += some,
        }
    }
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
    use core_domain::iam::{AccessToken, SigningKeyQuery, TokenHash};
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

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn in_memory() -> (Arc<ManualClock>, Arc<dyn Store>) {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [1; 32].into(),
        });
        (clock, store)
    }

    #[tokio::test]
    async fn an_access_token_is_removed_when_it_has_expired_and_not_before() {
        let (clock, store) = in_memory();
        transact(store.as_ref(), |uow, _| {
            Box::pin(async move {
                let now = uow.now().await?;
                let token = AccessToken {
                    token_hash: TokenHash::of("token"),
                    session_id: SessionId::generate(now, &SeededEntropy::new(1)),
                    created_at: now,
                    expires_at: now.plus(Duration::from_secs(900)),
                };
                let repositories = uow.repositories(RecordKey::for_tests());
                repositories.access_tokens().insert(token).await?;
                Ok(())
            })
        })
        .await
        .unwrap();
        clock.advance(Duration::from_secs(899));
        assert_eq!(expired_tokens(store.as_ref()).await.unwrap(), 0);
        clock.advance(Duration::from_secs(1));
        assert_eq!(expired_tokens(store.as_ref()).await.unwrap(), 1);
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
            clock.advance(DAY);
        }
        assert_eq!(removed, 3);
    }
}
