//! The endpoint that plans a deployment: it compares the files of a site with the contents at the provider.

use std::sync::Arc;

use core_domain::access::{PlatformScope, authorize};
use core_domain::cli::{DeployPlan, PlannedFile, SiteError, SiteLimits, SiteManifest};
use core_domain::kernel::{
    Code, DeployPlanId, Error, Issue, PlatformId, Result, UnixSeconds, permission,
};
use core_domain::port::{Infrastructure, Mode, transact};
use core_domain::use_case::cli::{self, plan_key};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CliConfig;
use super::deploy::upstream_error;
use super::spool::blob_error;
use crate::kernel::{Cx, Endpoint, Input, Output, post, with};

/// Maximum size of a request in bytes.
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;

pub(super) fn rows(service: PlanService) -> Vec<Endpoint> {
    vec![
        post(
            "/api/v1/platforms/{platformId}/deploy/plan",
            "planDeployment",
        )
        .summary("Plans the upload of a built site.")
        .description(
            "The request lists all files of the site. The response lists those whose content \
                 the provider does not have; the upload needs only them. A plan is valid for 15 \
                 minutes, for the caller that made it, and for any branch. It can be used more \
                 than once.",
        )
        .success(&[StatusCode::CREATED])
        .refuses(&[Code::InvalidState, Code::LimitReached, Code::UpstreamError])
        .body_limit(MAX_BODY_BYTES)
        .plain_with_scope(with(&Arc::new(service), plan)),
    ]
}

type Creates = PlatformScope<permission::DeploymentCreate>;

/// The provider and the limits of plans.
#[derive(Debug)]
pub(super) struct PlanService {
    infrastructure: Arc<dyn Infrastructure>,
    limits: SiteLimits,
}

impl PlanService {
    pub(super) fn new(infrastructure: Arc<dyn Infrastructure>, config: CliConfig) -> Self {
        Self {
            infrastructure,
            limits: config.sites,
        }
    }
}

/// A request to plan a deployment.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct NewPlan {
    /// All files of the site, 1 to 20,000. The rules are those of an uploaded archive.
    #[schemars(length(min = 1, max = 20_000))]
    files: Vec<PlannedFile>,
}

/// The plan of a deployment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlanView {
    /// The id of the plan.
    plan_id: DeployPlanId,
    /// When the plan expires, in Unix seconds.
    expires_at: UnixSeconds,
    /// The paths of the files whose content must be uploaded.
    missing: Vec<String>,
    /// Number of files of the site.
    file_count: usize,
    /// Total size of all files in bytes.
    total_bytes: u64,
    /// Total size of the missing files in bytes.
    missing_bytes: u64,
    /// Maximum size of the upload in bytes.
    max_upload_bytes: u64,
}

async fn plan(
    cx: &Cx,
    service: Arc<PlanService>,
    scope: Creates,
    input: Input<(PlatformId,), (), NewPlan>,
) -> Result<Output<PlanView>> {
    cli::ensure_ready_to_deploy(&scope)?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let room = cli::ensure_room_for_plan(cx, &scope, uow.as_mut()).await;
    uow.rollback().await;
    room?;
    let manifest = SiteManifest::new(&input.body.files, service.limits).map_err(invalid_file)?;
    let (project, owner) = (cli::site_project(&scope), scope.id().as_str());
    let stored = service
        .infrastructure
        .stored_contents(&project, owner, manifest.files())
        .await
        .map_err(upstream_error)?;
    let plan = store(cx, scope.id(), &manifest).await?;
    let files = manifest.files();
    let missing = files.iter().filter(|file| !stored.contains(&file.digest));
    Ok(Output::new(PlanView {
        plan_id: plan.id,
        expires_at: UnixSeconds(plan.expires_at),
        max_upload_bytes: service.limits.upload_bytes,
        missing_bytes: missing.clone().map(|file| file.size).sum(),
        missing: missing.map(|file| file.path.clone()).collect(),
        file_count: files.len(),
        total_bytes: files.iter().map(|file| file.size).sum(),
    }))
}

/// Stores the list of files, then the record that needs it.
async fn store(cx: &Cx, platform: &PlatformId, manifest: &SiteManifest) -> Result<DeployPlan> {
    let id = DeployPlanId::generate(cx.app.clock.now(), cx.entropy.as_ref());
    let key = plan_key(&id);
    let list = manifest.to_json();
    cx.app.blobs.put(&key, list).await.map_err(blob_error)?;
    let (context, id) = (&cx.domain, &id);
    let created = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let scope: Creates = authorize(context, uow, platform).await?;
            cli::create_plan(context, &scope, uow, id).await
        })
    });
    let created = created.await;
    if created.is_err()
        && let Err(error) = cx.app.blobs.remove(&key).await
    {
        tracing::warn!(
            key,
            ?error,
            "the list of files of a refused plan was not removed"
        );
    }
    created
}

/// Returns the error for a list of files that breaks a rule.
fn invalid_file((position, error): (Option<usize>, SiteError)) -> Error {
    let message = error.to_string();
    let code = match error {
        SiteError::NotAllowed(code, _) => code,
        _ => "too_large",
    };
    let path = match position {
        Some(position) => vec!["files".to_owned(), position.to_string(), "path".to_owned()],
        None => vec!["files".to_owned()],
    };
    Error::Invalid(vec![Issue {
        path,
        code,
        message,
    }])
}
