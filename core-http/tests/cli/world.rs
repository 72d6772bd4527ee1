//! One platform, its service, and an archive format that tests can write by hand.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use core_domain::cli::{Limits, SiteError};
use core_domain::kernel::{
    Caller, Context, DeploymentId, ManualClock, PlatformId, Role, Timestamp,
};
use core_domain::port::{BlobError, Blobs, Mode, SiteArchives, SiteFile, Wake, transact};
use core_domain::provisioning::Job;
use core_domain::registry::{Deployment, DeploymentChange, DeploymentStatus};
use core_domain::use_case::registry::change_deployment;
use core_http::kernel::testing::{Answer, app, call, member, operator, send};
use core_http::kernel::{App, Body, Service, bytes_body, empty_body};
use core_storage::memory::{MemoryConfig, open};
use futures_util::stream;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};

/// How large an upload may be here.
pub(crate) const MOST: usize = 1_000;

/// A site as [`ByHand`] reads it.
pub(crate) const SITE: &[u8] = b"index.html\nstyle.css";

/// An archive is the paths of its files, one a line; each has its own path as content.
#[derive(Debug)]
struct ByHand;

#[async_trait]
impl SiteArchives for ByHand {
    async fn unpack(&self, upload: Vec<u8>) -> Result<Vec<SiteFile>, SiteError> {
        let text = String::from_utf8_lossy(&upload);
        if text.contains("link") {
            return Err(SiteError::Unfit("symlink", "a link".to_owned()));
        }
        if text.contains("bomb") {
            return Err(SiteError::TooLarge("a bomb".to_owned()));
        }
        if text.contains("junk") {
            return Err(SiteError::UnknownFormat);
        }
        let file = |line: &str| SiteFile {
            path: line.to_owned(),
            content: line.as_bytes().to_vec(),
        };
        Ok(text.lines().map(file).collect())
    }
}

/// Blobs that can be counted, can fail and can be kept waiting.
#[derive(Debug)]
pub(crate) struct Kept {
    keys: Mutex<BTreeSet<String>>,
    pub(crate) fails: AtomicBool,
    /// As many uploads as there are permits are let in.
    pub(crate) gate: Semaphore,
    /// Gets a permit for each upload that came.
    pub(crate) came: Semaphore,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            keys: Mutex::default(),
            fails: AtomicBool::new(false),
            gate: Semaphore::new(1_000),
            came: Semaphore::new(0),
        }
    }
}

impl Kept {
    pub(crate) fn count(&self) -> usize {
        self.keys.lock().unwrap().len()
    }

    pub(crate) fn has(&self, deployment: &Value) -> bool {
        let id = DeploymentId::parse(deployment.as_str().unwrap()).unwrap();
        let key = core_domain::use_case::cli::blob_key(&id);
        self.keys.lock().unwrap().contains(&key)
    }
}

#[async_trait]
impl Blobs for Kept {
    async fn put(&self, key: &str, _: Vec<u8>) -> Result<(), BlobError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(BlobError::Failed("the disk is full".to_owned()));
        }
        self.came.add_permits(1);
        self.gate.acquire().await.unwrap().forget();
        self.keys.lock().unwrap().insert(key.to_owned());
        Ok(())
    }

    async fn get(&self, _: &str) -> Result<Vec<u8>, BlobError> {
        Err(BlobError::Missing)
    }

    async fn remove(&self, key: &str) -> Result<(), BlobError> {
        self.keys.lock().unwrap().remove(key);
        Ok(())
    }
}

/// Counts how often the workers are woken, and tells of it.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    count: AtomicU32,
    pub(crate) now: Notify,
}

impl Woken {
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.now.notify_waiters();
    }
}

pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) registry: Service,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) woken: Arc<Woken>,
    pub(crate) platform: String,
    app: Arc<App>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let store = open(MemoryConfig {
            clock: clock.clone(),
            cursor_key: [7; 32].into(),
        });
        let (kept, woken) = (Arc::<Kept>::default(), Arc::<Woken>::default());
        let app = Arc::new(App {
            blobs: kept.clone(),
            wake: woken.clone(),
            ..(*app(store, clock.clone())).clone()
        });
        let limits = Limits {
            upload_bytes: MOST as u64,
            ..Limits::default()
        };
        let rows = core_http::cli::endpoints(Arc::new(ByHand), limits);
        let mut world = Self {
            service: Service::builder("cli", app.clone(), rows)
                .mount("/api/v1", "")
                .build()
                .unwrap(),
            registry: core_http::registry::service(app.clone()).unwrap(),
            clock,
            kept,
            woken,
            platform: String::new(),
            app,
        };
        world.platform = world.new_platform("shop").await;
        world
    }

    pub(crate) async fn new_platform(&self, slug: &str) -> String {
        let body = json!({ "name": slug, "slug": slug });
        let path = "/api/v1/platforms";
        let made = call(&self.registry, "POST", path, &operator(), body).await;
        made.json["id"].as_str().unwrap().to_owned()
    }

    /// Suspends, cancels or restores the platform.
    pub(crate) async fn move_platform(&self, how: &str) {
        let path = format!("/api/v1/platforms/{}/{how}", self.platform);
        let moved = call(&self.registry, "POST", &path, &operator(), json!({})).await;
        assert!(moved.status.is_success(), "{:?}", moved.json);
    }

    /// A member of the platform's organization, who may deploy.
    pub(crate) fn ada(&self) -> Caller {
        member("ada", &self.platform, Role::Member).unwrap()
    }

    pub(crate) fn path(&self) -> String {
        format!("/api/v1/platforms/{}/deploy", self.platform)
    }

    /// Deploys as Ada, with these headers.
    pub(crate) async fn deploy(&self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let body = bytes_body(body.to_vec());
        self.deploy_as(&self.ada(), &self.path(), headers, body)
            .await
    }

    pub(crate) async fn deploy_as(
        &self,
        caller: &Caller,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Answer {
        let mut request = Request::post(path).extension(caller.clone());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(&self.service, request.body(body).unwrap()).await
    }

    pub(crate) fn show_path(&self, deployment: &Value) -> String {
        let id = deployment.as_str().unwrap();
        format!("/api/v1/platforms/{}/deployments/{id}", self.platform)
    }

    pub(crate) async fn show(&self, deployment: &Value, query: &str) -> Answer {
        let path = format!("{}{query}", self.show_path(deployment));
        call(&self.service, "GET", &path, &self.ada(), Value::Null).await
    }

    /// Moves a deployment as its job would.
    pub(crate) async fn advance(&self, deployment: &Value, change: &DeploymentChange) {
        let id = DeploymentId::parse(deployment.as_str().unwrap()).unwrap();
        let (cx, id) = (&Context::system(self.app.entropy.clone()), &id);
        transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(change_deployment(cx, uow, id, change))
        })
        .await
        .unwrap();
    }

    pub(crate) async fn activate(&self, deployment: &Value) {
        let active = DeploymentChange {
            status: Some(DeploymentStatus::Active),
            ..DeploymentChange::default()
        };
        self.advance(deployment, &active).await;
    }

    /// How many audit entries there are for an action on the platform.
    pub(crate) async fn audited(&self, action: &str) -> u64 {
        let path = format!("/api/v1/platforms/{}/audit?action={action}", self.platform);
        let audit = call(&self.registry, "GET", &path, &operator(), Value::Null).await;
        audit.json["pagination"]["total"].as_u64().unwrap()
    }

    async fn stored(&self, deployment: &Value) -> Deployment {
        let mut uow = self.app.store.begin(Mode::Auto).await.unwrap();
        let id = deployment.as_str().unwrap();
        let found = uow.deployments().get(id).await.unwrap();
        found.unwrap().into_inner()
    }

    /// Who is said to have deployed.
    pub(crate) async fn user_of(&self, deployment: &Value) -> String {
        self.stored(deployment).await.user_id
    }

    /// The job that works on a deployment.
    pub(crate) async fn job_of(&self, deployment: &Value) -> Job {
        let id = self.stored(deployment).await.job_id.unwrap();
        let mut uow = self.app.store.begin(Mode::Auto).await.unwrap();
        let found = uow.jobs().get(id.as_str()).await.unwrap();
        found.unwrap().into_inner()
    }

    pub(crate) fn later(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn other_tenant(&self) -> Caller {
        let other = PlatformId::parse("another-platform").unwrap();
        member("eve", other.as_str(), Role::Owner).unwrap()
    }
}

/// A body in pieces of which nobody knows how many come; says whether it was read.
pub(crate) fn pieces(count: usize, piece: &'static [u8]) -> (Body, Arc<AtomicBool>) {
    let read = Arc::new(AtomicBool::new(false));
    let seen = read.clone();
    let frames = (0..count).map(move |_| {
        seen.store(true, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from_static(piece)))
    });
    let body = StreamBody::new(stream::iter(frames));
    (body.boxed_unsync(), read)
}

/// A body of a site that goes on for as long as its client wants: give the client's permit to end it.
pub(crate) fn unending(reading: &Arc<Semaphore>, end: &Arc<Semaphore>) -> Body {
    let (reading, end) = (reading.clone(), end.clone());
    let frames = stream::once(async move {
        reading.add_permits(1);
        end.acquire().await.unwrap().forget();
        Ok(Frame::data(Bytes::from_static(SITE)))
    });
    StreamBody::new(frames).boxed_unsync()
}

pub(crate) fn nothing() -> Body {
    empty_body()
}
