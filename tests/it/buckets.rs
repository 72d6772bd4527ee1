//! Uploads in a bucket: two nodes that share nothing else but the database, backups, and a server that stops.

use std::path::Path;

use core_s3::testing::{S3Server, credentials};
use core_suite::backup::{BackupSummary, CopyStart};
use core_suite::{Suite, SuiteBuilder};
use tempfile::TempDir;

use crate::world::{Backend, Fresh, Installation, PlatformMember, sign_up, site_archive};

/// An installation on Postgres whose first node runs no jobs.
struct World {
    bucket: S3Server,
    database: Fresh,
    /// The data folder of the other node.
    other_folder: TempDir,
}

impl World {
    async fn new() -> Self {
        Self {
            bucket: S3Server::start().await.unwrap(),
            database: Fresh::on(Backend::Postgres).await,
            other_folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns the builder of a node with uploads below this path of the server.
    fn node(&self, path: &str) -> SuiteBuilder {
        let builder = self.database.builder.clone().secret([7; 32]);
        builder.s3(self.bucket.url(path), credentials())
    }

    fn receiving_node(&self) -> SuiteBuilder {
        self.node("uploads/core").worker_slots(0)
    }

    fn working_node(&self) -> SuiteBuilder {
        self.node("uploads/core")
            .data_folder(self.other_folder.path())
    }

    fn stored_uploads(&self) -> usize {
        self.bucket.keys().unwrap().len()
    }
}

/// Uploads a site, whose deployment no node runs yet. Returns the path of the deployment.
async fn upload(suite: &Suite, ada: &PlatformMember) -> String {
    let accepted = suite.send("gateway", ada.deployment(site_archive())).await;
    let accepted = accepted.expect(202);
    let id = accepted.text("deploymentId");
    format!("/api/v1/cli/platforms/{}/deployments/{id}", ada.platform)
}

async fn assert_becomes_active(suite: &Suite, ada: &PlatformMember, deployment: &str) {
    let ended = ["active", "failure", "canceled"];
    let ended = suite.until(&ada.token, deployment, &ended).await;
    assert_eq!(ended.text("status"), "active", "{}", ended.json);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_at_one_node_on_postgres_is_deployed_by_another_with_a_folder_of_its_own() {
    let world = World::new().await;
    let receiving = world.receiving_node().build().await.unwrap();
    let ada = sign_up(&receiving, "engines", "Engines").await;
    let deployment = upload(&receiving, &ada).await;
    assert_eq!(world.stored_uploads(), 1);
    assert!(!world.database.folder().join("uploads").exists());

    let working = world.working_node().build().await.unwrap();
    assert_becomes_active(&receiving, &ada, &deployment).await;
    assert!(!world.other_folder.path().join("uploads").exists());
    receiving.shutdown().await;
    working.shutdown().await;
    assert_eq!(world.stored_uploads(), 0, "the job removes the upload");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_on_postgres_fails_while_the_bucket_is_away_and_succeeds_after_that() {
    let world = World::new().await;
    let suite = world.receiving_node().build().await.unwrap();
    let ada = sign_up(&suite, "engines", "Engines").await;
    world.bucket.stop().unwrap();
    let refused = suite.send("gateway", ada.deployment(site_archive())).await;
    assert!(refused.status.is_server_error(), "{}", refused.json);
    world.bucket.start_again().await.unwrap();
    upload(&suite, &ada).await;
    assert_eq!(world.stored_uploads(), 1);
    suite.shutdown().await;
}

async fn back_up(builder: SuiteBuilder, folder: &Path) -> BackupSummary {
    let written = builder.back_up(folder, &mut |_| {}).await;
    written.unwrap()
}

async fn restore(builder: &SuiteBuilder, folder: &Path, start: CopyStart) {
    let builder = builder.clone();
    let restored = builder.restore(folder, start, &mut |_| {}).await;
    restored.unwrap();
}

/// Restores the backup twice, as after an interruption, and runs the deployment whose upload is in it.
async fn assert_restores(
    builder: SuiteBuilder,
    backup: &Path,
    ada: &PlatformMember,
    deployment: &str,
) {
    restore(&builder, backup, CopyStart::Empty).await;
    restore(&builder, backup, CopyStart::Resumed).await;
    let suite = builder.build().await.unwrap();
    assert_becomes_active(&suite, ada, deployment).await;
    suite.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_on_postgres_has_the_uploads_of_the_bucket_and_restores_them_to_a_bucket_or_a_folder()
 {
    let world = World::new().await;
    let suite = world.receiving_node().build().await.unwrap();
    let ada = sign_up(&suite, "engines", "Engines").await;
    let deployment = upload(&suite, &ada).await;
    suite.shutdown().await;
    let folder = tempfile::tempdir().unwrap();
    let written = back_up(world.receiving_node(), folder.path()).await;
    assert_eq!(written.blobs, 1);
    assert_eq!(written.blob_bytes, site_archive().len() as u64);

    let to_bucket = Fresh::on(Backend::Postgres).await;
    let restored = to_bucket.builder.clone().secret([7; 32]);
    let restored = restored.s3(world.bucket.url("uploads/restored"), credentials());
    assert_restores(restored, folder.path(), &ada, &deployment).await;

    let to_folder = Fresh::on(Backend::Postgres).await;
    let restored = to_folder.builder.clone().secret([7; 32]);
    assert_restores(restored, folder.path(), &ada, &deployment).await;

    let blobs = folder.path().join("blobs");
    let copy = std::fs::read_dir(blobs).unwrap().next().unwrap().unwrap();
    std::fs::write(copy.path(), "damaged").unwrap();
    let damaged = Fresh::on(Backend::Postgres).await;
    let damaged = damaged.builder.clone();
    let mut ignore = |_| {};
    let refused = damaged.restore(folder.path(), CopyStart::Empty, &mut ignore);
    let refused = refused.await.unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_on_postgres_moves_the_uploads_of_a_folder_to_a_bucket() {
    let world = World::new().await;
    let original = world.database.builder.clone().secret([7; 32]);
    let original = original.worker_slots(0);
    let suite = original.clone().build().await.unwrap();
    let ada = sign_up(&suite, "engines", "Engines").await;
    let deployment = upload(&suite, &ada).await;
    suite.shutdown().await;
    let folder = tempfile::tempdir().unwrap();
    let written = back_up(original, folder.path()).await;
    assert_eq!(written.blobs, 0);

    let restored = Fresh::on(Backend::Postgres).await;
    let restored = restored.builder.clone().secret([7; 32]);
    let restored = restored.s3(world.bucket.url("uploads/core"), credentials());
    assert_restores(restored, folder.path(), &ada, &deployment).await;
}
