//! Deployment of a site by direct upload, or from the contents of an earlier deployment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use core_domain::cli::SiteFile;
use core_domain::port::{
    BlobError, Cause, ProviderError, Site, SiteDeployment, SiteRedeploy, SiteUpload,
};
use core_domain::registry::PRODUCTION;
use tokio::sync::Semaphore;

use super::deployment::{self, no_project};
use super::known_contents::{KnownContents, KnownFile};
use super::plan::{PlanError, UploadPlan};
use super::project;
use super::receipt::{Receipt, Receipts};
use super::token::UploadTokens;
use super::transfer::{ensure_stored, find_missing, transfer};
use crate::client::Client;
use crate::multipart::{Form, boundary};

/// The parts of the provider that a deployment needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sites<'a> {
    pub(crate) client: &'a Client,
    /// One permit for each part of a site that may be in memory.
    pub(crate) permits: &'a Arc<Semaphore>,
    pub(crate) receipts: &'a Receipts,
}

impl Sites<'_> {
    /// Deploys the site, unless the deployment exists. The site goes live only after all its files are uploaded.
    pub(crate) async fn deploy(&self, upload: SiteUpload) -> Result<SiteDeployment, ProviderError> {
        let (client, project) = (self.client, upload.project.as_str());
        let key = upload.deployment_key.as_str();
        if upload.branch.is_empty() || key.is_empty() {
            return permanent_error("a deployment needs a branch and a key");
        }
        if let Some(found) = self.find(project, key).await? {
            return Ok(found);
        }
        let tokens = UploadTokens::open(client, project).await?;
        let most_files = tokens.max_files().await;
        if upload.site.files().is_empty() || upload.site.files().len() > most_files {
            return permanent_error(&format!("a deployment has 1 to {most_files} files"));
        }
        let known = match is_complete(upload.site.as_ref()) {
            true => KnownContents::default(),
            false => self.known_contents(project).await?,
        };
        let plan = Arc::new(read(Arc::clone(&upload.site), known).await?);
        let permits = Arc::clone(self.permits);
        transfer(
            &tokens,
            Arc::clone(&upload.site),
            Arc::clone(&plan),
            permits,
        )
        .await?;
        self.create(project, &upload.branch, key, &plan).await
    }

    /// Deploys the content of an earlier deployment again. Production is rolled back to its own earlier deployments, which
    /// Cloudflare keeps as they are. In all other cases a new deployment is made from the receipt of the earlier one.
    pub(crate) async fn redeploy(
        &self,
        request: &SiteRedeploy,
    ) -> Result<SiteDeployment, ProviderError> {
        if [&request.branch, &request.source_branch] == [PRODUCTION; 2] {
            return deployment::roll_back(self.client, request).await;
        }
        let (project, key) = (request.project.as_str(), request.deployment_key.as_str());
        if let Some(found) = self.find(project, key).await? {
            return Ok(found);
        }
        let receipt = self.receipts.get(project, &request.source_key).await;
        let receipt = receipt.map_err(blob_error)?;
        let plan = receipt.as_ref().and_then(Receipt::to_plan);
        let (Some(receipt), Some(plan)) = (receipt, plan) else {
            return permanent_error(
                "the files of the earlier deployment are not known; deploy the site again",
            );
        };
        let tokens = UploadTokens::open(self.client, project).await?;
        ensure_stored(&tokens, &plan).await?;
        // Only the newest receipts are kept, and this one is in use.
        let source_key = &request.source_key;
        self.receipts.store(project, source_key, &receipt).await;
        self.create(project, &request.branch, key, &plan).await
    }

    /// Returns the deployment with this key.
    ///
    /// # Errors
    /// [`ProviderError::Permanent`] if the project does not exist.
    async fn find(
        &self,
        project: &str,
        key: &str,
    ) -> Result<Option<SiteDeployment>, ProviderError> {
        if project::read(self.client, project).await?.is_none() {
            return Err(no_project(project));
        }
        deployment::observe(self.client, project, key).await
    }

    /// Returns the digests of those contents that Cloudflare has of the project, which must be the owner's.
    pub(crate) async fn stored_contents(
        &self,
        project: &str,
        files: &[SiteFile],
    ) -> Result<BTreeSet<[u8; 32]>, ProviderError> {
        let known = self.known_contents(project).await?;
        if known.is_empty() {
            return Ok(BTreeSet::new());
        }
        let hash = |file: &SiteFile| match known.find(file) {
            Some(KnownFile::Asset(hash)) => Some(hash),
            _ => None,
        };
        let hashes: BTreeSet<&str> = files.iter().filter_map(hash).collect();
        let tokens = UploadTokens::open(self.client, project).await?;
        let missing = find_missing(&tokens, &hashes).await?;
        let is_stored = |file: &SiteFile| match known.find(file) {
            Some(KnownFile::Asset(hash)) => !missing.contains(hash),
            Some(KnownFile::Settings(_) | KnownFile::Unused) => true,
            None => false,
        };
        // A content is stored only if every file that has it can use it: hashes depend on the extension, and settings files
        // have none.
        let lacking = files.iter().filter(|file| !is_stored(file));
        let lacking: BTreeSet<[u8; 32]> = lacking.map(|file| file.digest).collect();
        let digests = files.iter().map(|file| file.digest);
        Ok(digests.filter(|digest| !lacking.contains(digest)).collect())
    }

    async fn known_contents(&self, project: &str) -> Result<KnownContents, ProviderError> {
        let known = self.receipts.known_contents(project).await;
        known.map_err(blob_error)
    }

    /// Creates the deployment of contents that the provider has.
    async fn create(
        &self,
        project: &str,
        branch: &str,
        key: &str,
        plan: &UploadPlan,
    ) -> Result<SiteDeployment, ProviderError> {
        // Before the deployment, so that every deployment has a receipt, even if the process ends.
        let receipt = Receipt::of(plan);
        self.receipts.store(project, key, &receipt).await;
        let (content_type, body) = form(branch, key, plan)?;
        let made = deployment::create(self.client, project, key, content_type, body).await?;
        Ok(made.into_site_deployment(self.client, project).await?)
    }
}

/// Returns whether all files of a site are uploaded.
fn is_complete(site: &dyn Site) -> bool {
    site.uploaded_files().len() == site.files().len()
}

fn blob_error(error: BlobError) -> ProviderError {
    ProviderError::Transient(Cause::new(error))
}

fn permanent_error<T>(why: &str) -> Result<T, ProviderError> {
    Err(ProviderError::Permanent(why.to_owned()))
}

async fn read(site: Arc<dyn Site>, known: KnownContents) -> Result<UploadPlan, ProviderError> {
    let read = tokio::task::spawn_blocking(move || UploadPlan::read(site.as_ref(), known)).await;
    match read {
        Ok(Ok(plan)) => Ok(plan),
        Ok(Err(PlanError::InvalidSite(what))) => permanent_error(&what),
        Ok(Err(error @ PlanError::Io(_))) => Err(ProviderError::Transient(Cause::new(error))),
        Err(error) => Err(ProviderError::Transient(Cause::new(error))),
    }
}

/// Builds the form that creates a deployment: the manifest of its files, the branch and the deployment key.
fn form(branch: &str, key: &str, plan: &UploadPlan) -> Result<(String, Bytes), ProviderError> {
    let manifest: BTreeMap<_, _> = plan
        .assets()
        .map(|asset| (format!("/{}", asset.path), asset.hash.as_str()))
        .collect();
    let manifest = serde_json::to_string(&manifest)
        .map_err(|error| ProviderError::Transient(Cause::new(error)))?;
    let texts = [
        ("manifest", manifest.as_str()),
        ("branch", branch),
        ("commit_hash", key),
        ("commit_dirty", "false"),
    ];
    let contents = plan.settings.iter().map(|file| &file.content[..]);
    let parts = texts
        .iter()
        .map(|(_, text)| text.as_bytes())
        .chain(contents);
    let mut form = Form::new(boundary(parts));
    for (name, text) in texts {
        form = form.text(name, text);
    }
    for file in &plan.settings {
        form = form.file(file.name, settings_type(file.name), &file.content);
    }
    Ok(form.finish())
}

fn settings_type(name: &str) -> &'static str {
    match name {
        "_routes.json" => "application/json",
        "_worker.js" => "application/javascript",
        _ => "text/plain",
    }
}
