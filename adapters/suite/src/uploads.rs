//! Removes uploads that a process died with before their deployment was stored.

use std::time::Duration;

use core_domain::kernel::{Error, Result};
use core_domain::port::{BlobError, Blobs, Mode, Store};
use core_domain::use_case::cli::uploads_nobody_needs;

/// How old an upload must be before anybody asks whether it is needed.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes what nobody needs; tells how many.
pub(crate) async fn sweep(store: &dyn Store, blobs: &dyn Blobs) -> Result<usize> {
    let old = blobs.older_than(DAY).await.map_err(failed)?;
    if old.is_empty() {
        return Ok(0);
    }
    let mut uow = store.begin(Mode::Read).await?;
    let unneeded = uploads_nobody_needs(uow.as_mut(), old).await;
    uow.rollback().await;
    let unneeded = unneeded?;
    for key in &unneeded {
        blobs.remove(key).await.map_err(failed)?;
    }
    Ok(unneeded.len())
}

fn failed(error: BlobError) -> Error {
    Error::Upstream(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use core_domain::kernel::{DeploymentId, ManualClock, PlatformId, Timestamp};
    use core_domain::port::{UnitOfWork, transact};
    use core_domain::registry::{Deployment, DeploymentStatus};
    use core_domain::use_case::cli::blob_key;
    use core_storage::memory::{MemoryConfig, open};

    use super::*;

    /// Holds keys alone, all of them old.
    #[derive(Debug)]
    struct Old(Mutex<Vec<String>>);

    #[async_trait]
    impl Blobs for Old {
        async fn put(&self, _: &str, _: Vec<u8>) -> Result<(), BlobError> {
            Err(BlobError::Failed("not here".to_owned()))
        }

        async fn get(&self, _: &str) -> Result<Vec<u8>, BlobError> {
            Err(BlobError::Missing)
        }

        async fn remove(&self, key: &str) -> Result<(), BlobError> {
            self.0.lock().unwrap().retain(|kept| kept != key);
            Ok(())
        }

        async fn older_than(&self, age: Duration) -> Result<Vec<String>, BlobError> {
            assert_eq!(age, DAY);
            Ok(self.0.lock().unwrap().clone())
        }
    }

    fn deployment(id: &str, status: DeploymentStatus) -> Deployment {
        let now = Timestamp::from_seconds(1_800_000_000);
        Deployment {
            id: DeploymentId::parse(id).unwrap(),
            idempotency_key: id.to_owned(),
            platform_id: PlatformId::parse("p-1").unwrap(),
            user_id: "ada".to_owned(),
            cf_deployment_id: None,
            project_name: "shop".to_owned(),
            branch: id.to_owned(),
            url: None,
            error_message: None,
            status,
            file_count: None,
            total_bytes: None,
            started_at: None,
            completed_at: None,
            created_at: now,
            updated_at: now,
            content_hash: None,
            job_id: None,
        }
    }

    async fn insert(uow: &mut dyn UnitOfWork, deployment: &Deployment) -> Result<()> {
        uow.deployments().insert(deployment.clone()).await?;
        Ok(())
    }

    #[tokio::test]
    async fn an_upload_goes_when_its_deployment_has_ended_or_was_never_made_and_not_before() {
        let store = open(MemoryConfig {
            clock: Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000))),
            cursor_key: [1; 32].into(),
        });
        let key = |id: &str| blob_key(&DeploymentId::parse(id).unwrap());
        let mut keys = vec![key("never-made"), "of-somebody-else".to_owned()];
        for (id, status) in [
            ("queued", DeploymentStatus::Queued),
            ("deploying", DeploymentStatus::Deploying),
            ("active", DeploymentStatus::Active),
            ("failed", DeploymentStatus::Failure),
        ] {
            let deployment = &deployment(id, status);
            transact(store.as_ref(), |uow, _| Box::pin(insert(uow, deployment)))
                .await
                .unwrap();
            keys.push(key(id));
        }
        let blobs = Old(Mutex::new(keys));
        assert_eq!(sweep(store.as_ref(), &blobs).await.unwrap(), 3);
        let kept = blobs.0.lock().unwrap().clone();
        assert_eq!(
            kept,
            [
                "of-somebody-else".to_owned(),
                key("queued"),
                key("deploying")
            ]
        );
    }
}
