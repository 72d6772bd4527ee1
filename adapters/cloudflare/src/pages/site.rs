//! Deployment of a site by direct upload.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use core_domain::port::{Cause, ProviderError, Site, SiteDeployment, SiteUpload};
use tokio::sync::Semaphore;

use super::asset::{PlanError, UploadPlan};
use super::deployment::{self, no_project};
use super::project;
use super::token::UploadTokens;
use super::transfer::transfer;
use crate::client::Client;
use crate::multipart::{Form, boundary};

/// Deploys the site, unless the deployment exists. The site goes live only after all its files are uploaded.
pub(crate) async fn deploy(
    client: &Client,
    permits: &Arc<Semaphore>,
    upload: SiteUpload,
) -> Result<SiteDeployment, ProviderError> {
    let (project, key) = (upload.project.as_str(), upload.deployment_key.as_str());
    if upload.branch.is_empty() || key.is_empty() {
        return permanent_error("a deployment needs a branch and a key");
    }
    if project::read(client, project).await?.is_none() {
        return Err(no_project(project));
    }
    if let Some(found) = deployment::observe(client, project, key).await? {
        return Ok(found);
    }
    let tokens = UploadTokens::open(client, project).await?;
    let most_files = tokens.max_files().await;
    if upload.site.files().is_empty() || upload.site.files().len() > most_files {
        return permanent_error(&format!("a deployment has 1 to {most_files} files"));
    }
    let plan = Arc::new(read(Arc::clone(&upload.site)).await?);
    let site = Arc::clone(&upload.site);
    transfer(&tokens, site, Arc::clone(&plan), Arc::clone(permits)).await?;
    let (content_type, body) = form(&upload, &plan)?;
    let made = deployment::create(client, project, key, content_type, body).await?;
    Ok(made.into_site_deployment(client, project).await?)
}

fn permanent_error<T>(why: &str) -> Result<T, ProviderError> {
    Err(ProviderError::Permanent(why.to_owned()))
}

async fn read(site: Arc<dyn Site>) -> Result<UploadPlan, ProviderError> {
    let read = tokio::task::spawn_blocking(move || UploadPlan::read(site.as_ref())).await;
    match read {
        Ok(Ok(plan)) => Ok(plan),
        Ok(Err(PlanError::InvalidSite(what))) => permanent_error(&what),
        Ok(Err(error @ PlanError::Io(_))) => Err(ProviderError::Transient(Cause::new(error))),
        Err(error) => Err(ProviderError::Transient(Cause::new(error))),
    }
}

/// Builds the form that creates a deployment: the manifest of its files, the branch and the deployment key.
fn form(upload: &SiteUpload, plan: &UploadPlan) -> Result<(String, Bytes), ProviderError> {
    let manifest: BTreeMap<_, _> = plan
        .files_to_upload()
        .map(|asset| (format!("/{}", asset.path), asset.hash.as_str()))
        .collect();
    let manifest = serde_json::to_string(&manifest)
        .map_err(|error| ProviderError::Transient(Cause::new(error)))?;
    let texts = [
        ("manifest", manifest.as_str()),
        ("branch", &upload.branch),
        ("commit_hash", &upload.deployment_key),
        ("commit_dirty", "false"),
    ];
    let contents = plan.settings.iter().map(|(_, content)| &content[..]);
    let parts = texts
        .iter()
        .map(|(_, text)| text.as_bytes())
        .chain(contents);
    let mut form = Form::new(boundary(parts));
    for (name, text) in texts {
        form = form.text(name, text);
    }
    for (name, content) in &plan.settings {
        form = form.file(name, settings_type(name), content);
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
