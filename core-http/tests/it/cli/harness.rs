//! A platform to deploy sites to, over a blob store that counts its blobs and can fail or block.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::access::RecordKey;
use core_domain::kernel::{Caller, Stored};
use core_domain::port::{
    BlobError, BlobReader, Blobs, Mode, Repository, StagedBlob, Store, UnitOfWork, Within,
};
use core_domain::registry::{Deployment, DeploymentQuery};
use core_domain::testing::MemoryBlobs;
use core_http::cli::{CliConfig, SiteLimits, UploadLimits};
use core_http::kernel::{App, Body, bytes_body};
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::Semaphore;

use crate::world::{
    Answer, SERVER_PATH, SITE, World, announce_commits, plain_member, platform_path,
};

/// The maximum size of an upload in these tests, in bytes.
pub(super) const MAX_UPLOAD_BYTES: usize = 1_000;

pub(super) struct UploadHarness {
    pub(super) world: World,
    pub(super) blobs: WatchedBlobs,
    pub(super) platform: String,
}

impl UploadHarness {
    pub(super) async fn new() -> Self {
        Self::with(UploadLimits::default()).await
    }

    pub(super) async fn with(uploads: UploadLimits) -> Self {
        Self::over(uploads, |store| store).await
    }

    /// Creates a harness whose followers are notified of commits.
    pub(super) async fn announcing() -> Self {
        Self::with_app(UploadLimits::default(), announce_commits).await
    }

    /// Creates a harness over the store that `around` wraps around the in-memory store.
    pub(super) async fn over(
        uploads: UploadLimits,
        around: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        Self::with_app(uploads, |app| app.store = around(app.store.clone())).await
    }

    async fn with_app(uploads: UploadLimits, configure: impl FnOnce(&mut App)) -> Self {
        let blobs = WatchedBlobs::default();
        let sites = SiteLimits {
            upload_bytes: MAX_UPLOAD_BYTES as u64,
            ..SiteLimits::default()
        };
        let world = World::with_uploads(CliConfig { sites, uploads }, |app| {
            app.blobs = Arc::new(blobs.clone());
            configure(app);
        });
        let platform = world.create_platform("harness").await;
        Self {
            world,
            blobs,
            platform,
        }
    }

    pub(super) fn path(&self) -> String {
        platform_path(&self.platform, "/deploy")
    }

    /// Returns a member of the platform's organization with the permission to deploy.
    pub(super) fn mary(&self) -> Caller {
        plain_member(&self.platform)
    }

    pub(super) async fn deploy(&self, headers: &[(&str, &str)], site: &[u8]) -> Answer {
        self.send(headers, bytes_body(site.to_vec())).await
    }

    pub(super) async fn send(&self, headers: &[(&str, &str)], body: Body) -> Answer {
        let path = self.path();
        self.world.upload(&path, &self.mary(), headers, body).await
    }

    pub(super) async fn show(&self, deployment: &str, query: &str) -> Answer {
        let path = platform_path(&self.platform, &format!("/deployments/{deployment}{query}"));
        self.world.cli.get(&self.mary(), &path).await
    }

    /// Returns the platform's deployments, newest first.
    pub(super) async fn deployments(&self) -> Vec<Stored<Deployment>> {
        let mut uow = self.world.app.store.begin(Mode::Read).await.unwrap();
        let all = DeploymentQuery::All { in_flight: false };
        let found = deployments(uow.as_mut()).list(Within::Installation, &all, 100);
        let mut found = found.await.unwrap();
        found.retain(|deployment| deployment.platform_id.as_str() == self.platform);
        found
    }

    /// Changes the newest deployment directly in the store.
    pub(super) async fn rewrite(&self, change: impl FnOnce(&mut Deployment)) {
        let newest = self.deployments().await.swap_remove(0);
        let mut next = newest.edit();
        change(&mut next);
        let mut uow = self.world.app.store.begin(Mode::Write).await.unwrap();
        let replaced = deployments(uow.as_mut()).replace(&newest, next).await;
        replaced.unwrap();
        uow.commit().await.unwrap();
    }
}

fn deployments(uow: &mut dyn UnitOfWork) -> &mut dyn Repository<Deployment> {
    uow.repositories(RecordKey::for_tests()).deployments()
}

/// The blob operation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailingOperation {
    Staging,
    Store,
    Removal,
}

#[derive(Clone, Debug)]
pub(super) struct WatchedBlobs {
    blobs: MemoryBlobs,
    keys: Arc<Mutex<BTreeSet<String>>>,
    staged: Arc<AtomicUsize>,
    pub(super) full: Arc<Mutex<Option<FailingOperation>>>,
    /// Has one permit for each commit of an upload that can proceed.
    pub(super) gate: Arc<Semaphore>,
    /// Gains a permit for each upload that reaches the gate.
    arrivals: Arc<Semaphore>,
}

impl Default for WatchedBlobs {
    fn default() -> Self {
        Self {
            blobs: MemoryBlobs::default(),
            keys: Arc::default(),
            staged: Arc::default(),
            full: Arc::default(),
            gate: Arc::new(Semaphore::new(1_000)),
            arrivals: Arc::new(Semaphore::new(0)),
        }
    }
}

impl WatchedBlobs {
    /// Returns the number of uploads in progress and the number of stored uploads.
    pub(super) fn count(&self) -> (usize, usize) {
        let stored = self.keys.lock().unwrap().len();
        (self.staged.load(Ordering::SeqCst), stored)
    }

    /// Blocks every commit until permits are added again.
    pub(super) fn close(&self) {
        self.gate.forget_permits(1_000);
    }

    /// Waits until an upload reaches the gate.
    pub(super) async fn wait_for_arrival(&self) {
        take_permit(&self.arrivals).await;
    }

    fn check(&self, place: FailingOperation) -> Result<(), BlobError> {
        if *self.full.lock().unwrap() == Some(place) {
            return Err(BlobError::Failed(SERVER_PATH.into()));
        }
        Ok(())
    }
}

/// Takes a permit. Panics after 20 seconds without one.
async fn take_permit(permits: &Semaphore) {
    let permit = tokio::time::timeout(Duration::from_secs(20), permits.acquire()).await;
    permit.unwrap().unwrap().forget();
}

#[async_trait]
impl Blobs for WatchedBlobs {
    async fn stage(&self) -> Result<Box<dyn StagedBlob>, BlobError> {
        self.staged.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(WatchedStagedBlob {
            blob: self.blobs.stage().await?,
            watch: StagingGuard(self.clone()),
        }))
    }

    async fn open(&self, key: &str) -> Result<Box<dyn BlobReader>, BlobError> {
        self.blobs.open(key).await
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        self.check(FailingOperation::Removal)?;
        self.keys.lock().unwrap().remove(key);
        self.blobs.remove(key).await
    }
}

#[derive(Debug)]
struct WatchedStagedBlob {
    blob: Box<dyn StagedBlob>,
    watch: StagingGuard,
}

#[derive(Debug)]
struct StagingGuard(WatchedBlobs);

impl Drop for StagingGuard {
    fn drop(&mut self) {
        self.0.staged.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl StagedBlob for WatchedStagedBlob {
    async fn append(&mut self, bytes: Vec<u8>) -> Result<(), BlobError> {
        self.watch.0.check(FailingOperation::Staging)?;
        self.blob.append(bytes).await
    }

    async fn open(&self) -> Result<Box<dyn BlobReader>, BlobError> {
        self.blob.open().await
    }

    async fn commit(self: Box<Self>, key: &str) -> Result<(), BlobError> {
        let blobs = &self.watch.0;
        blobs.check(FailingOperation::Store)?;
        blobs.arrivals.add_permits(1);
        take_permit(&blobs.gate).await;
        blobs.keys.lock().unwrap().insert(key.to_owned());
        self.blob.commit(key).await
    }
}

/// Returns a body without a known length, and a flag that is set when the body is read.
pub(super) fn pieces(count: usize, piece: &'static [u8]) -> (Body, Arc<AtomicBool>) {
    let read = Arc::new(AtomicBool::new(false));
    let seen = read.clone();
    let frames = (0..count).map(move |_| {
        seen.store(true, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from_static(piece)))
    });
    let body = StreamBody::new(stream::iter(frames));
    (Body::new(body), read)
}

/// Returns a body that pauses: it adds a permit to `reading` when it is first read, and ends when `end` gets a permit.
pub(super) fn slow(reading: &Arc<Semaphore>, end: &Arc<Semaphore>) -> Body {
    let (reading, end) = (reading.clone(), end.clone());
    let frames = stream::once(async move {
        reading.add_permits(1);
        end.acquire().await.unwrap().forget();
        Ok(Frame::data(Bytes::from_static(SITE)))
    });
    Body::new(StreamBody::new(frames))
}
