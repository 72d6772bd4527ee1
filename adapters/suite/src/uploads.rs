//! Removes orphaned uploads, and the lists of files of expired plans. An upload is orphaned when a process crashes between
//! storing it and the commit of its deployment.

use std::time::Duration;

use core_domain::kernel::{Error, Result};
use core_domain::port::{BlobError, Blobs, Cause, Mode, Store};
use core_domain::use_case::cli::orphaned_uploads;
use core_domain::use_case::shared::{LeaseHolder, MAX_SLICE};

/// The minimum age of an orphaned upload: one hour, longer than an upload and its commit take.
const MIN_AGE: Duration = Duration::from_secs(60 * 60);

/// Removes orphaned uploads while this process holds the lease. Returns their number.
pub(crate) async fn remove_orphaned(
    store: &dyn Store,
    blobs: &dyn Blobs,
    holder: &LeaseHolder,
) -> Result<usize> {
    let old = blobs.older_than(MIN_AGE).await.map_err(upstream_error)?;
    let mut removed = 0;
    for slice in old.chunks(MAX_SLICE as usize) {
        if !holder.acquire(store).await? {
            break;
        }
        let mut uow = store.begin(Mode::Read).await?;
        let orphaned = orphaned_uploads(uow.as_mut(), slice.to_vec()).await;
        uow.rollback().await;
        for key in &orphaned? {
            blobs.remove(key).await.map_err(upstream_error)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn upstream_error(error: BlobError) -> Error {
    Error::Upstream(Cause::new(error).to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use core_domain::kernel::{DeploymentId, Line, PlatformId, Timestamp};
    use core_domain::port::{BlobReader, StagedBlob, UnitOfWork, transact};
    use core_domain::registry::{Branch, CreateDeployment, Deployment, DeploymentStatus};
    use core_domain::testing::{ManualClock, RecordKey, named_uuid};
    use core_domain::use_case::cli::blob_key;
    use core_storage::memory::{MemoryConfig, open};

    use super::*;

    /// A blob store that only has keys, all of them old.
    #[derive(Debug)]
    struct Old(Mutex<Vec<String>>);

    #[async_trait]
    impl Blobs for Old {
        async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError> {
            Err(BlobError::Failed("not here".into()))
        }

        async fn open(&self, _: &str) -> Result<Box<dyn BlobReader>, BlobError> {
            Err(BlobError::Missing)
        }

        async fn remove(&self, key: &str) -> Result<(), BlobError> {
            self.0.lock().unwrap().retain(|kept| kept != key);
            Ok(())
        }

        async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
            assert_eq!(age, MIN_AGE);
            Ok(self.0.lock().unwrap().clone())
        }
    }

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);
    const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

    /// Returns a deployment that has had its status since the given instant.
    fn deployment(id: &str, status: DeploymentStatus, since: Timestamp) -> Deployment {
        let command = CreateDeployment {
            idempotency_key: Line::parse(id).unwrap(),
            user_id: Line::parse("ada").unwrap(),
            project_name: Line::parse("shop").unwrap(),
            branch: Branch::parse(id).unwrap(),
        };
        let [id, platform] = [id, "p-1"].map(named_uuid);
        let (id, platform) = (DeploymentId::parse(&id), PlatformId::parse(&platform));
        Deployment {
            status,
            ..Deployment::create(id.unwrap(), &platform.unwrap(), command, since)
        }
    }

    async fn insert(uow: &mut dyn UnitOfWork, deployment: &Deployment) -> Result<()> {
        let repositories = uow.repositories(RecordKey::for_tests());
        repositories
            .deployments()
            .insert(deployment.clone())
            .await?;
        Ok(())
    }

    #[tokio::test]
    async fn an_upload_is_removed_when_no_job_can_need_it_any_more() {
        let store = open(MemoryConfig {
            clock: Arc::new(ManualClock::at(NOW)),
            cursor_key: [1; 32].into(),
        });
        let key = |id: &str| blob_key(&DeploymentId::parse(&named_uuid(id)).unwrap());
        let others = ["of-somebody-else", "audit-archive-2026-11-0123456789abcdef"];
        let others = others.map(str::to_owned);
        let mut keys = vec![key("never-made")];
        keys.extend(others.clone());
        let mut needed = others.to_vec();
        // An operator may retry a failed deployment for a week.
        let since_a_week = NOW.minus(WEEK);
        let nearly = since_a_week.plus(Duration::from_millis(1));
        for (id, status, since, is_needed) in [
            ("queued", DeploymentStatus::Queued, since_a_week, true),
            ("deploying", DeploymentStatus::Deploying, since_a_week, true),
            ("active", DeploymentStatus::Active, NOW, false),
            ("failed", DeploymentStatus::Failure, nearly, true),
            ("given-up", DeploymentStatus::Failure, since_a_week, false),
        ] {
            let deployment = &deployment(id, status, since);
            transact(store.as_ref(), |uow, _| Box::pin(insert(uow, deployment)))
                .await
                .unwrap();
            keys.push(key(id));
            needed.extend(is_needed.then(|| key(id)));
        }
        let removed = keys.len() - needed.len();
        let blobs = Old(Mutex::new(keys));
        let holder = LeaseHolder::exclusive("sweep", MIN_AGE);
        let outcome = remove_orphaned(store.as_ref(), &blobs, &holder).await;
        assert_eq!(outcome.unwrap(), removed);
        assert_eq!(*blobs.0.lock().unwrap(), needed);
    }
}
