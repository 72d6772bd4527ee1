//! Removes what time has made useless, at the start and once a day.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Result;
use core_domain::port::{Blobs, Store, transact};
use core_domain::use_case::shared::remove_expired_answers;
use tokio::task::JoinHandle;

use crate::uploads;

const PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// Sweeps until it is dropped.
#[derive(Debug)]
pub(crate) struct Sweeper(JoinHandle<()>);

impl Sweeper {
    /// Starts sweeping on the current tokio runtime.
    pub(crate) fn start(store: Arc<dyn Store>, blobs: Arc<dyn Blobs>) -> Self {
        Self(tokio::spawn(async move {
            loop {
                match uploads::remove_orphaned(store.as_ref(), blobs.as_ref()).await {
                    Ok(0) => {}
                    Ok(removed) => tracing::info!(removed, "orphaned uploads were removed"),
                    Err(error) => tracing::warn!(?error, "old uploads could not be looked at"),
                }
                if let Err(error) = expired_keys(store.as_ref()).await {
                    tracing::warn!(?error, "expired idempotency keys could not be removed");
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

#[cfg(test)]
mod tests {
    use core_domain::kernel::Timestamp;
    use core_domain::shared::IdempotencyKey;
    use core_domain::testing::{ManualClock, RecordKey};
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
}
