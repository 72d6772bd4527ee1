//! Deploys a site: plans, sends the missing files, and waits until the site is live.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use core_client::types::deployment::{DeploymentPlan, QueuedDeployment};
use core_client::{Client, DeployOptions, Error, SiteFile};
use tokio::task::spawn_blocking;

use super::follow::report_deployment;
use crate::args::DeployArgs;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::progress::{Progress, amount};
use crate::site::archive::pack;
use crate::site::digest::to_hex;
use crate::site::digest_cache::DigestCache;
use crate::site::hashing::{HashedFile, hash_files};
use crate::site::walk::{LocalFile, find_files};

/// Maximum number of plans for one deployment. A plan fails if it expires, or if contents disappear from the server.
const MAX_PLANS: u32 = 3;

/// Deploys a site.
pub(crate) async fn deploy(context: &Context, args: &DeployArgs) -> Result<()> {
    let folder = site_folder(context, args.folder.as_deref());
    let client = context.client()?;
    let files = find_files(&folder)?;
    let platform = context.platform(&client).await?;
    let files = hash(context, &folder, files).await?;
    let deployment = Deployer {
        output: context.output,
        client: &client,
        platform: &platform,
        options: DeployOptions {
            branch: Some(context.branch(args.branch.as_deref())),
            message: args.message.clone(),
            ..DeployOptions::default()
        },
    };
    let queued = deployment.send(&files).await?;
    report_deployment(context, &client, &platform, &queued, args.no_wait).await
}

/// Returns the folder with the built site.
fn site_folder(context: &Context, folder: Option<&Path>) -> PathBuf {
    match (folder, &context.project) {
        (Some(folder), _) => folder.to_owned(),
        (None, Some(project)) => project.site_folder(),
        (None, None) => PathBuf::from("."),
    }
}

/// Hashes the files on threads of their own.
async fn hash(context: &Context, folder: &Path, files: Vec<LocalFile>) -> Result<Vec<HashedFile>> {
    let total = files.iter().map(|file| file.size).sum();
    let (count, output) = (files.len(), context.output);
    let progress = Progress::bytes(output, "hashing", total);
    let counter = progress.counter();
    let (config_folder, folder, now) = (
        context.config_folder.clone(),
        folder.to_owned(),
        context.clock.now(),
    );
    let hashed = spawn_blocking(move || {
        let cache = DigestCache::read(&config_folder, &folder);
        hash_files(files, &cache, now, &*counter)
    });
    let hashed = hashed
        .await
        .map_err(|error| Failure::other(error.to_string()))?;
    progress.finish(&format!("The site has {}.", amount(count, total)));
    hashed
}

/// Sends a site to a platform.
struct Deployer<'a> {
    output: Output,
    client: &'a Client,
    platform: &'a str,
    options: DeployOptions,
}

impl Deployer<'_> {
    async fn send(&self, files: &[HashedFile]) -> Result<QueuedDeployment> {
        for _ in 0..MAX_PLANS {
            let plan = self.plan(files).await?;
            let missing: HashSet<&str> = plan.missing.iter().map(String::as_str).collect();
            let files = files.iter().map(|hashed| &hashed.file);
            let missing = files.filter(|file| missing.contains(file.path.as_str()));
            match self.upload_plan(missing.cloned().collect(), &plan).await? {
                Some(queued) => return Ok(queued),
                None => self
                    .output
                    .note("The server's copies have changed; the deployment is planned again."),
            }
        }
        Err(Failure::other(format!(
            "The plan of the deployment expired {MAX_PLANS} times."
        ))
        .hint("Try again later."))
    }

    async fn plan(&self, files: &[HashedFile]) -> Result<DeploymentPlan> {
        let list = files.iter().map(|hashed| SiteFile {
            path: hashed.file.path.clone(),
            size: hashed.file.size,
            digest: to_hex(&hashed.digest),
        });
        let progress = Progress::spinner(self.output, "planning");
        let plan = self
            .client
            .plan_deployment(self.platform, list.collect())
            .await;
        progress.clear();
        plan.map_err(|error| self.explain(error))
    }

    /// Sends the missing files of a plan. Returns `None` if the server needs a new plan.
    async fn upload_plan(
        &self,
        missing: Vec<LocalFile>,
        plan: &DeploymentPlan,
    ) -> Result<Option<QueuedDeployment>> {
        if missing.len() != plan.missing.len() {
            return Err(
                Failure::other("The server asks for files that the site does not have.")
                    .hint("The server may be newer than this program; update core-cli."),
            );
        }
        match self.upload(missing, plan).await {
            Ok(queued) => Ok(Some(queued)),
            Err(error) if is_outdated(&error) => Ok(None),
            Err(error) => Err(self.explain(error)),
        }
    }

    async fn upload(
        &self,
        files: Vec<LocalFile>,
        plan: &DeploymentPlan,
    ) -> core_client::Result<QueuedDeployment> {
        let (count, total) = (files.len(), files.iter().map(|file| file.size).sum());
        let progress = Progress::bytes(self.output, "uploading", total);
        let archive = pack(files, plan.max_upload_bytes, progress.counter());
        let options = DeployOptions {
            plan_id: Some(plan.plan_id.clone()),
            ..self.options.clone()
        };
        let outcome = self.client.deploy(self.platform, archive, &options).await;
        match &outcome {
            Ok(_) if count == 0 => progress.finish("The server has every file already."),
            Ok(_) => progress.finish(&format!("{} sent.", amount(count, total))),
            Err(_) => progress.clear(),
        }
        outcome
    }

    /// Adds the next step to a refusal of the server.
    fn explain(&self, error: Error) -> Failure {
        let branch = self.options.branch.clone().unwrap_or_default();
        let pinned = error
            .api()
            .and_then(|error| error.details.get("pinnedDeploymentId"))
            .is_some();
        let hint = match error.status() {
            Some(409) if pinned => {
                "Production is pinned. Run `core-cli unpin`, or deploy a preview with --branch."
                    .to_owned()
            }
            Some(409) => format!(
                "Another deployment of {branch} is in progress. `core-cli deployments` lists it; try again when it has ended."
            ),
            Some(413) => {
                "The new files of the site are larger than the server accepts at once. Leave files out with .coreignore, or deploy a part of them to a preview first, because the server keeps their contents."
                    .to_owned()
            }
            _ => return error.into(),
        };
        Failure::from(error).hint(hint)
    }
}

/// Returns whether the plan is unknown to the server, or contents have disappeared since it was made.
fn is_outdated(error: &Error) -> bool {
    match error.status() {
        Some(404) => true,
        Some(409) => error
            .api()
            .is_some_and(|error| error.details.contains_key("missing")),
        _ => false,
    }
}
