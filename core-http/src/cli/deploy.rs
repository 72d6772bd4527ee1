//! The handler that receives a site. The order matters: the caller is authorized before a byte of the body is read, and
//! the upload is stored before the record that needs it is created.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::sync::Arc;

use core_domain::access::{PlatformScope, authorize};
use core_domain::cli::{DeployPlan, SiteError, SiteFile, SiteManifest};
use core_domain::kernel::{
    Code, Context, DeployPlanId, DeploymentId, Error, Issue, PlatformId, Record, Result,
    StoreError, Stored, permission,
};
use core_domain::port::{
    ArchiveError, BlobError, Cause, Infrastructure, Mode, ProviderError, Site, SiteArchives,
    SiteStorage, StagedBlob, transact,
};
use core_domain::registry::{
    BRANCH_PATTERN, Branch, Deployment, DeploymentMessage, DeploymentStatus, PRODUCTION,
};
use core_domain::use_case::cli::{self, Deploy, DeployOutcome, blob_key, manifest_key, plan_key};
use http::{HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::CliConfig;
use super::fair_slots::Slot;
use super::limiter::{UploadLimiter, UploadLimits, too_many};
use super::media;
use super::request::DeployRequest;
use super::spool::{Source, StagedUpload, blob_error};
use crate::kernel::request::header_names::{DEPLOY_BRANCH, REPLAYED, USER_ID};
use crate::kernel::{App, Body, Cx, Endpoint, KEY_PATTERN, Output, RawInput, post, with};

pub(super) fn rows(service: DeployService) -> Vec<Endpoint> {
    vec![
        post("/api/v1/platforms/{platformId}/deploy", "deploy")
            .summary("Deploys a built site.")
            .description(
                "The body is an archive (tar, gzipped tar or zip) with an `index.html`, or a form \
                 with the archive in the field `file`. The upload is checked and stored, and a \
                 job deploys it to the pages project of the platform. Without an idempotency key, \
                 the same content for the same branch within 10 minutes is the same deployment, \
                 unless another one was live since. A repeated request returns the existing \
                 deployment with 200. Only one deployment of a branch can be in progress, and \
                 none of `production` while a deployment is pinned.\n\nWith `plan`, the archive \
                 has only the files that the plan reported as missing, at their paths; it is \
                 empty if none is missing. If the provider has lost a content since, the response \
                 is `CONFLICT`, and `details.missing` lists the files: make another plan.",
            )
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .takes(media::ACCEPTED)
            .header(
                DEPLOY_BRANCH.as_str(),
                json!({ "type": "string", "pattern": BRANCH_PATTERN, "default": PRODUCTION,
                    "description": "The branch. `production` is the live site; other branches are previews." }),
            )
            .header(
                USER_ID.as_str(),
                json!({ "type": "string", "minLength": 1, "maxLength": 128,
                    "description": "The user for whom a service deploys. Ignored for other callers." }),
            )
            .header(
                "Idempotency-Key",
                json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": KEY_PATTERN,
                    "description": "A repeated key with the same site and branch returns the existing deployment." }),
            )
            .refuses(&[
                Code::ValidationError,
                Code::NotFound,
                Code::Conflict,
                Code::InvalidState,
                Code::IdempotencyKeyReused,
                Code::PayloadTooLarge,
                Code::UnsupportedMediaType,
                Code::UpstreamError, Code::LimitReached])
            .uploads(with(&Arc::new(service), deploy)),
    ]
}

type Creates = PlatformScope<permission::DeploymentCreate>;

/// Query parameters of a deployment request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct DeployQuery {
    /// The plan of the upload. Default: none; the upload then has all files.
    plan: Option<DeployPlanId>,
    /// A description of the deployment, for example the subject of a commit. Default: none.
    message: Option<DeploymentMessage>,
}

/// The response to a deployment request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployView {
    /// The id of the deployment.
    deployment_id: DeploymentId,
    /// The status of the deployment.
    status: DeploymentStatus,
    /// The name of the pages project that the site is deployed to.
    project_name: String,
}

/// The ports and limits that the deploy handler needs.
#[derive(Debug)]
pub(super) struct DeployService {
    archives: Arc<dyn SiteArchives>,
    infrastructure: Arc<dyn Infrastructure>,
    max_bytes: u64,
    limits: UploadLimits,
    limiter: UploadLimiter,
}

async fn deploy(
    cx: &Cx,
    service: Arc<DeployService>,
    scope: Creates,
    input: RawInput<(PlatformId,), DeployQuery>,
) -> Result<Output<DeployView>> {
    let (platform,) = input.path;
    cli::ensure_ready_to_deploy(&scope)?;
    let request = DeployRequest::parse(cx, service.max_bytes)?;
    let manifest = match &input.query.plan {
        Some(plan) => Some(read_manifest(cx, &scope, plan).await?),
        None => None,
    };
    let mut slot = service
        .limiter
        .receive(&platform, request.max_bytes)
        .await?;
    let plan_digest = manifest.as_ref().map(|manifest| manifest.digest());
    let spooled = service.spool(cx, input.body, &request, &mut slot, plan_digest);
    let spooled = spooled.await?;
    let permit = service.limiter.check(&platform).await?;
    let (app, domain) = (Arc::clone(&cx.app), cx.domain.clone());
    let project = cli::site_project(&scope);
    // A separate task, because the future of this handler is dropped if the client disconnects. The upload would then
    // stay without a deployment, and slot and permit would be released before the work ends.
    let stored = tokio::spawn(async move {
        let _held = (slot, permit);
        let site = service
            .open(spooled.blob.as_ref(), manifest.as_deref())
            .await?;
        let place = Place {
            project: &project,
            branch: &request.branch,
            owner: &platform,
        };
        service.ensure_complete(site.as_ref(), place).await?;
        let size = service.measure(site.as_ref(), place).await?;
        let deploy = Deploy {
            branch: request.branch,
            key: request.key,
            user_id: request.user_id,
            deployment_id: DeploymentId::generate(app.clock.now(), domain.entropy.as_ref()),
            content_hash: spooled.content_hash,
            is_planned: manifest.is_some(),
            message: input.query.message,
            file_count: size.files,
            total_bytes: size.bytes,
            storage: size.storage,
        };
        let manifest = manifest.map(|manifest| manifest.to_json());
        store(&app, &domain, &platform, &deploy, spooled.blob, manifest).await
    });
    match stored.await {
        Ok(deployed) => deployed.map(deploy_response),
        Err(_) => Err(Error::Internal("storing an upload panicked".to_owned())),
    }
}

impl DeployService {
    pub(super) fn new(
        archives: Arc<dyn SiteArchives>,
        infrastructure: Arc<dyn Infrastructure>,
        config: CliConfig,
    ) -> Self {
        Self {
            archives,
            infrastructure,
            max_bytes: config.sites.upload_bytes,
            limits: config.uploads,
            limiter: UploadLimiter::new(config.uploads),
        }
    }

    /// Receives the body. Stops if the client takes too long, or if the slot is revoked for a platform that has fewer
    /// slots.
    async fn spool(
        &self,
        cx: &Cx,
        body: Body,
        request: &DeployRequest,
        slot: &mut Slot,
        plan_digest: Option<String>,
    ) -> Result<StagedUpload> {
        let source = Source {
            body,
            media: request.media.clone(),
            max_bytes: request.max_bytes,
            idle_timeout: self.limits.idle_timeout,
            plan_digest,
        };
        let spooled = tokio::select! {
            biased;
            spooled = source.spool(cx.app.blobs.as_ref()) => spooled?,
            () = slot.wait_for_revocation() => return Err(too_many()),
            () = tokio::time::sleep(self.limits.upload_timeout) => {
                return Err(Error::refused(Code::BadRequest, "The upload took too long."));
            }
        };
        slot.make_permanent();
        Ok(spooled)
    }

    /// Opens and validates the upload. The job validates it again.
    async fn open(
        &self,
        upload: &dyn StagedBlob,
        manifest: Option<&SiteManifest>,
    ) -> Result<Arc<dyn Site>> {
        let upload = upload.open().await.map_err(blob_error)?;
        let opened = match manifest {
            None => self.archives.open(upload).await,
            Some(manifest) => {
                let manifest = Box::new(Cursor::new(manifest.to_json()));
                self.archives.open_part(upload, manifest).await
            }
        };
        opened.map_err(not_a_site)
    }

    /// Refuses a site with a content that was neither uploaded nor is stored at the provider.
    async fn ensure_complete(&self, site: &dyn Site, place: Place<'_>) -> Result<()> {
        if site.uploaded_files().len() == site.files().len() {
            return Ok(());
        }
        let uploaded: BTreeSet<[u8; 32]> = site
            .uploaded_files()
            .iter()
            .map(|file| file.digest)
            .collect();
        let (project, owner) = (place.project, place.owner.as_str());
        let stored = self
            .infrastructure
            .stored_contents(project, owner, site.files())
            .await
            .map_err(upstream_error)?;
        let is_missing =
            |file: &&SiteFile| !uploaded.contains(&file.digest) && !stored.contains(&file.digest);
        let missing = site.files().iter().filter(is_missing);
        let missing: Vec<&str> = missing.map(|file| file.path.as_str()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Error::Refused {
            code: Code::Conflict,
            message: "The upload and the provider do not have all files. Make another plan."
                .to_owned(),
            details: json!({ "missing": missing }),
        })
    }

    /// Measures the site.
    async fn measure(&self, site: &dyn Site, place: Place<'_>) -> Result<SiteSize> {
        let bytes: u64 = site.files().iter().map(|file| file.size).sum();
        let (project, branch, owner) = (place.project, place.branch.as_str(), place.owner.as_str());
        let storage = self
            .infrastructure
            .site_storage(project, branch, owner, site.files())
            .await
            .map_err(upstream_error)?;
        Ok(SiteSize {
            storage,
            files: i64::try_from(site.files().len()).unwrap_or(i64::MAX),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        })
    }
}

/// The place of a site at the provider.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    project: &'a str,
    branch: &'a Branch,
    owner: &'a PlatformId,
}

/// Reads the list of files of a plan of the caller.
async fn read_manifest(cx: &Cx, scope: &Creates, plan: &DeployPlanId) -> Result<Arc<SiteManifest>> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let plan = cli::find_plan(cx, scope, uow.as_mut(), plan).await;
    uow.rollback().await;
    let list = cx.app.blobs.open(&plan_key(&plan?.id)).await;
    let mut list = list.map_err(|error| match error {
        // The clean-up removes the list of an expired plan.
        BlobError::Missing => Error::NotFound(DeployPlan::KIND),
        error => blob_error(error),
    })?;
    let read = tokio::task::spawn_blocking(move || {
        let mut json = Vec::new();
        list.read_to_end(&mut json)?;
        SiteManifest::from_json(&json)
    });
    match read.await {
        Ok(manifest) => {
            let manifest = manifest.map_err(|error| Error::Internal(error.to_string()))?;
            Ok(Arc::new(manifest))
        }
        Err(_) => Err(Error::Internal("reading a plan panicked".to_owned())),
    }
}

/// Converts an error of the provider. Its cause appears in the log only.
pub(super) fn upstream_error(error: ProviderError) -> Error {
    Error::Upstream(Cause::new(error).to_string())
}

/// The size of an unpacked site.
#[derive(Clone, Copy, Debug)]
struct SiteSize {
    storage: SiteStorage,
    /// The number of files.
    files: i64,
    /// The total size of the files in bytes.
    bytes: i64,
}

fn not_a_site(error: ArchiveError) -> Error {
    let refused = match error {
        ArchiveError::Refused(refused) => refused,
        other => return Error::Upstream(Cause::new(other).to_string()),
    };
    let message = refused.to_string();
    let code = match refused {
        SiteError::TooLarge(_) => "too_large",
        SiteError::NotAllowed(code, _) => code,
        _ => "unknown_format",
    };
    Error::Invalid(vec![Issue::field("file", code, message)])
}

/// Stores the upload and queues its deployment. Removes the upload if no new deployment needs it.
async fn store(
    app: &App,
    cx: &Context,
    platform: &PlatformId,
    deploy: &Deploy,
    upload: Box<dyn StagedBlob>,
    manifest: Option<Vec<u8>>,
) -> Result<DeployOutcome> {
    ensure_room(app, cx, platform, deploy).await?;
    let mut keys = vec![blob_key(&deploy.deployment_id)];
    if let Some(manifest) = manifest {
        let key = manifest_key(&deploy.deployment_id);
        app.blobs.put(&key, manifest).await.map_err(blob_error)?;
        keys.push(key);
    }
    upload.commit(&keys[0]).await.map_err(blob_error)?;
    let outcome = match queue(app, cx, platform, deploy).await {
        Err(Error::Store(error)) if !error.is_certainly_not_applied() => {
            // If this read fails as well, the upload stays, because a deployment may need it.
            find_created(app, cx, platform, deploy, error).await?
        }
        outcome => outcome,
    };
    if matches!(outcome, Ok(DeployOutcome::New(_))) {
        return outcome;
    }
    for key in keys {
        if let Err(error) = app.blobs.remove(&key).await {
            tracing::warn!(key, ?error, "an orphaned upload was not removed");
        }
    }
    outcome
}

/// Refuses a site that would exceed the storage limit of the platform, before the upload is stored.
async fn ensure_room(
    app: &App,
    cx: &Context,
    platform: &PlatformId,
    deploy: &Deploy,
) -> Result<()> {
    let mut uow = app.store.begin(Mode::Read).await?;
    let scope: Creates = authorize(cx, uow.as_mut(), platform).await?;
    let checked = cli::ensure_room_for_site(cx, &scope, uow.as_mut(), deploy).await;
    uow.rollback().await;
    checked
}

/// Queues the deployment. A refusal is tried once more: a concurrent request with the same content may have committed
/// in between, and the second attempt finds its deployment.
async fn queue(
    app: &App,
    cx: &Context,
    platform: &PlatformId,
    deploy: &Deploy,
) -> Result<DeployOutcome> {
    match queue_once(app, cx, platform, deploy).await {
        Err(error) if matches!(error.code(), Code::IdempotencyKeyReused | Code::Conflict) => {
            queue_once(app, cx, platform, deploy).await
        }
        outcome => outcome,
    }
}

async fn queue_once(
    app: &App,
    cx: &Context,
    platform: &PlatformId,
    deploy: &Deploy,
) -> Result<DeployOutcome> {
    transact(app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let scope: Creates = authorize(cx, uow, platform).await?;
            cli::deploy(cx, &scope, uow, deploy.clone()).await
        })
    })
    .await
}

/// Returns the deployment if it was committed although the reply to the commit was lost. Otherwise returns the error of
/// the commit.
async fn find_created(
    app: &App,
    cx: &Context,
    platform: &PlatformId,
    deploy: &Deploy,
    lost: StoreError,
) -> Result<Result<DeployOutcome>> {
    let mut uow = app.store.begin(Mode::Read).await?;
    let scope: Creates = authorize(cx, uow.as_mut(), platform).await?;
    let found = cli::find_created(&scope, uow.as_mut(), &deploy.deployment_id).await?;
    Ok(found.map_or(Err(Error::Store(lost)), |found| {
        Ok(DeployOutcome::New(found))
    }))
}

pub(super) fn deploy_response(deployed: DeployOutcome) -> Output<DeployView> {
    let view = |deployment: Stored<Deployment>| {
        let deployment = deployment.into_inner();
        Output::new(DeployView {
            deployment_id: deployment.id,
            status: deployment.status,
            project_name: deployment.project_name,
        })
    };
    match deployed {
        DeployOutcome::New(deployment) => view(deployment),
        DeployOutcome::Replayed(deployment) => view(deployment)
            .status(StatusCode::OK)
            .header(REPLAYED.clone(), HeaderValue::from_static("true")),
    }
}
