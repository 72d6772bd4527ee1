//! A commit with an unknown outcome: the upload of the deployment is neither lost nor left without a deployment.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use core_domain::access::RecordKey;
use core_domain::kernel::{Effects, StoreError, Timestamp};
use core_domain::port::{Mode, Repositories, Store, UnitOfWork};
use core_http::cli::UploadLimits;

use super::harness::UploadHarness;
use crate::world::SITE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LostPart {
    /// The transaction is committed, but the store reports an unknown outcome.
    Answer,
    /// The transaction is rolled back, and the store reports an unknown outcome.
    Change,
}

type Next = Arc<Mutex<Option<LostPart>>>;

/// A store that loses the next commit or its result.
#[derive(Debug)]
struct CommitLosingStore {
    store: Arc<dyn Store>,
    next: Next,
}

#[async_trait]
impl Store for CommitLosingStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        let (unit, next) = (self.store.begin(mode).await?, self.next.clone());
        Ok(Box::new(LosingUnit { unit, next }))
    }

    async fn back_off(&self, run: u32) {
        self.store.back_off(run).await;
    }
}

struct LosingUnit {
    unit: Box<dyn UnitOfWork>,
    next: Next,
}

#[async_trait]
impl UnitOfWork for LosingUnit {
    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.unit.now().await
    }

    fn effects(&mut self) -> &mut Effects {
        self.unit.effects()
    }

    fn repositories(&mut self, key: RecordKey) -> &mut dyn Repositories {
        self.unit.repositories(key)
    }

    async fn commit(self: Box<Self>) -> Result<Effects, StoreError> {
        let lost = self.next.lock().unwrap().take();
        match lost {
            None => return self.unit.commit().await,
            Some(LostPart::Answer) => drop(self.unit.commit().await?),
            Some(LostPart::Change) => self.unit.rollback().await,
        }
        Err(StoreError::commit_unknown("the connection was lost"))
    }

    async fn rollback(self: Box<Self>) {
        self.unit.rollback().await;
    }
}

#[tokio::test]
async fn a_deployment_whose_commit_has_an_unknown_outcome_is_looked_up() {
    for (lost, status, count) in [(LostPart::Answer, 202, 1), (LostPart::Change, 503, 0)] {
        let next = Next::default();
        let harness = UploadHarness::over(UploadLimits::default(), |store| {
            let next = next.clone();
            Arc::new(CommitLosingStore { store, next })
        });
        let harness = harness.await;
        *next.lock().unwrap() = Some(lost);
        let answer = harness.deploy(&[], SITE).await;
        assert_eq!(answer.status, status, "{lost:?}: {}", answer.json);
        assert_eq!(harness.deployments().await.len(), count);
        assert_eq!(harness.blobs.count(), (0, count));
    }
}
