//! The handler that takes a site. The order matters: who may not deploy is refused before a byte is read, and the upload
//! is kept before the record that needs it is made.

use std::sync::Arc;

use core_domain::cli::{Limits, SiteError};
use core_domain::kernel::{Code, Context, DeploymentId, Error, Issue, PlatformId, Result};
use core_domain::port::{Mode, SiteArchives, Stored, transact};
use core_domain::registry::Deployment;
use core_domain::use_case::cli::{self, Deploy, Deployed, blob_key};
use core_domain::use_case::registry::look_up_deployment;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, StatusCode};

use super::request::Asked;
use super::shape::DeployShape;
use super::turns::Turns;
use super::upload::Upload;
use crate::kernel::{App, Cx, Output, RawInput, UploadHandler, header_names};

const REPLAYED: HeaderName = HeaderName::from_static(header_names::REPLAYED);

/// The handler and what it unpacks sites with.
#[derive(Clone, Debug)]
pub(super) struct Deploying {
    archives: Arc<dyn SiteArchives>,
    most_bytes: u64,
    turns: Turns,
}

impl Deploying {
    pub(super) fn new(archives: Arc<dyn SiteArchives>, limits: Limits) -> Self {
        Self {
            archives,
            most_bytes: limits.upload_bytes,
            turns: Turns::new(limits.uploads_at_once),
        }
    }

    async fn deploy(self, cx: &Cx, input: RawInput<(PlatformId,)>) -> Result<Output<DeployShape>> {
        let (platform,) = input.path;
        may_deploy(cx, &platform).await?;
        let asked = Asked::of(cx, self.most_bytes)?;
        let turn = self.turns.take().await?;
        let upload = Upload::read(input.body, asked.media, self.most_bytes).await?;
        let (app, domain) = (Arc::clone(&cx.app), cx.domain.clone());
        // A task of its own, so that a client that leaves now does not leave an upload behind that nobody needs, and so
        // that its turn lasts for as long as the upload is in memory.
        let kept = tokio::spawn(async move {
            let size = self.measure(&upload).await?;
            let wanted = Deploy {
                platform_id: platform,
                branch: asked.branch,
                key: asked.key,
                user_id: asked.user_id,
                deployment_id: DeploymentId::generate(app.clock.now(), domain.entropy.as_ref()),
                content_hash: upload.hash,
                file_count: size.files,
                total_bytes: size.bytes,
            };
            let kept = keep(&app, &domain, &wanted, upload.bytes).await;
            drop(turn);
            kept
        });
        match kept.await {
            Ok(deployed) => deployed.map(answer),
            Err(_) => Err(Error::Internal("keeping an upload panicked".to_owned())),
        }
    }

    /// Unpacks the upload for a look; the job will do it again.
    async fn measure(&self, upload: &Upload) -> Result<Size> {
        let files = self.archives.unpack(upload.bytes.clone()).await;
        let files = files.map_err(unfit)?;
        let bytes: usize = files.iter().map(|file| file.content.len()).sum();
        Ok(Size {
            files: i64::try_from(files.len()).unwrap_or(i64::MAX),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        })
    }
}

impl<'a> UploadHandler<'a, (PlatformId,), (), DeployShape> for Deploying {
    type Answer = BoxFuture<'a, Result<Output<DeployShape>>>;

    fn call(&self, cx: &'a Cx, input: RawInput<(PlatformId,)>) -> Self::Answer {
        Box::pin(self.clone().deploy(cx, input))
    }
}

/// How large a site is once it is unpacked.
#[derive(Clone, Copy, Debug)]
struct Size {
    files: i64,
    bytes: i64,
}

async fn may_deploy(cx: &Cx, platform: &PlatformId) -> Result<()> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let ready = cli::ready_to_deploy(cx, uow.as_mut(), platform).await;
    uow.rollback().await;
    ready.map(drop)
}

fn unfit(error: SiteError) -> Error {
    let message = error.to_string();
    let code = match error {
        SiteError::TooLarge(_) => "too_large",
        SiteError::Unfit(code, _) => code,
        _ => "unknown_format",
    };
    Error::Invalid(vec![Issue::field("file", code, message)])
}

/// Keeps the upload and queues its deployment; an upload that no deployment needs does not stay.
async fn keep(app: &App, cx: &Context, wanted: &Deploy, upload: Vec<u8>) -> Result<Deployed> {
    let key = blob_key(&wanted.deployment_id);
    let put = app.blobs.put(&key, upload).await;
    put.map_err(|error| Error::Upstream(error.to_string()))?;
    let outcome = match queue(app, cx, wanted).await {
        // It may have been committed all the same.
        Err(Error::Store(error)) => match find(app, &wanted.deployment_id).await? {
            Some(deployment) => Ok(Deployed::New(deployment)),
            None => Err(Error::Store(error)),
        },
        outcome => outcome,
    };
    if let Ok(Deployed::New(_)) = outcome {
        app.wake.wake();
    } else if let Err(error) = app.blobs.remove(&key).await {
        tracing::warn!(key, %error, "an upload nobody needs was left behind");
    }
    outcome
}

/// Who was slower by a moment is refused for what could not be seen yet, so a refusal is looked at twice.
async fn queue(app: &App, cx: &Context, wanted: &Deploy) -> Result<Deployed> {
    match queue_once(app, cx, wanted).await {
        Err(error) if matches!(error.code(), Code::IdempotencyKeyReused | Code::Conflict) => {
            queue_once(app, cx, wanted).await
        }
        outcome => outcome,
    }
}

async fn queue_once(app: &App, cx: &Context, wanted: &Deploy) -> Result<Deployed> {
    transact(app.store.as_ref(), |uow, _| {
        Box::pin(cli::deploy(cx, uow, wanted.clone()))
    })
    .await
}

/// The deployment, if it is stored. When that cannot be told the upload stays.
async fn find(app: &App, id: &DeploymentId) -> Result<Option<Stored<Deployment>>> {
    let mut uow = app.store.begin(Mode::Auto).await?;
    look_up_deployment(uow.as_mut(), id).await
}

fn answer(deployed: Deployed) -> Output<DeployShape> {
    match deployed {
        Deployed::New(deployment) => Output::new(deployment.into()),
        Deployed::Before(deployment) => Output::new(deployment.into())
            .status(StatusCode::OK)
            .header(REPLAYED, HeaderValue::from_static("true")),
    }
}
