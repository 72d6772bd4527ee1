//! Lists deployments and opens sites.

use std::io::{self, IsTerminal};

use core_client::types::deployment::{Deployment, DeploymentFilter, DeploymentStatus};
use core_client::{Client, PageQuery};
use serde_json::json;

use crate::args::{DeploymentsArgs, OpenArgs};
use crate::context::Context;
use crate::failure::{Failure, FailureKind, Result};
use crate::text::{or_dash, time};

/// Maximum number of pages in which an earlier deployment is searched.
const MAX_PAGES: u32 = 20;

/// Lists the deployments of the platform.
pub(crate) async fn list(context: &Context, args: DeploymentsArgs) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let filter = DeploymentFilter {
        branch: args.branch.map(|branch| context.branch(Some(&branch))),
        status: args.status,
        page: PageQuery {
            limit: Some(args.limit),
            cursor: None,
        },
    };
    let page = client.list_deployments(&platform, &filter).await?;
    let header = ["ID", "BRANCH", "STATUS", "CREATED (UTC)", "MESSAGE", "URL"];
    context.output.list(&page.data, &header, |deployment| {
        vec![
            deployment.deployment_id.clone(),
            deployment.branch.clone(),
            status(deployment),
            time(Some(deployment.created_at)),
            or_dash(deployment.message.as_deref()),
            or_dash(
                deployment
                    .permalink
                    .as_deref()
                    .or(deployment.url.as_deref()),
            ),
        ]
    })
}

/// Returns the status with the marks of the live and the pinned deployment.
fn status(deployment: &Deployment) -> String {
    let live = if deployment.is_live { " (live)" } else { "" };
    let pinned = if deployment.is_pinned {
        " (pinned)"
    } else {
        ""
    };
    format!("{}{live}{pinned}", deployment.status)
}

/// Opens the site of a deployment or branch.
pub(crate) async fn open_site(context: &Context, args: &OpenArgs) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let deployment = match &args.deployment {
        Some(id) => {
            let found = find_by_id(&client, &platform, id).await?;
            found.ok_or_else(|| {
                let message = format!("The platform has no deployment {id}.");
                Failure::new(FailureKind::NotFound, message)
                    .hint("List the deployments: core-cli deployments")
            })?
        }
        None => {
            let branch = context.branch(args.branch.as_deref());
            find_live(&client, &platform, &branch).await?
        }
    };
    let url = match &args.deployment {
        Some(_) => deployment.permalink.or(deployment.url),
        None => deployment.url,
    };
    let url = url.filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    let url = url.ok_or_else(|| {
        Failure::new(
            FailureKind::NotFound,
            format!(
                "The deployment {} has no address.",
                deployment.deployment_id
            ),
        )
    })?;
    context
        .output
        .result(&json!({ "url": url }), |_| url.clone())?;
    if !args.no_browser && io::stderr().is_terminal() && !context.output.is_json() {
        let opened = open::that_detached(&url);
        opened.map_err(|error| Failure::io("open the browser", &error))?;
    }
    Ok(())
}

/// Returns the deployment that visitors of a branch see.
pub(crate) async fn find_live(client: &Client, platform: &str, branch: &str) -> Result<Deployment> {
    let found = find_active(client, platform, branch, |deployment| deployment.is_live).await?;
    found.ok_or_else(|| no_live_deployment(branch))
}

/// Creates the failure of a command that needs a live deployment.
pub(crate) fn no_live_deployment(branch: &str) -> Failure {
    Failure::new(
        FailureKind::NotFound,
        format!("The branch {branch} has no live deployment."),
    )
    .hint("Deploy the site first: core-cli deploy DIR")
}

/// Returns the newest successful deployments of a branch, newest first.
pub(crate) async fn list_active(
    client: &Client,
    platform: &str,
    branch: &str,
) -> Result<Vec<Deployment>> {
    let mut deployments = Vec::new();
    find_active(client, platform, branch, |deployment| {
        deployments.push(deployment.clone());
        false
    })
    .await?;
    Ok(deployments)
}

/// Returns the newest successful deployment of a branch for which a function returns `true`.
pub(crate) async fn find_active(
    client: &Client,
    platform: &str,
    branch: &str,
    is_wanted: impl FnMut(&Deployment) -> bool,
) -> Result<Option<Deployment>> {
    let filter = DeploymentFilter {
        branch: Some(branch.to_owned()),
        status: Some(DeploymentStatus::Active),
        ..DeploymentFilter::default()
    };
    find(client, platform, filter, is_wanted).await
}

/// Returns the deployment with an id; `None` if it is not among the newest of the platform.
pub(crate) async fn find_by_id(
    client: &Client,
    platform: &str,
    id: &str,
) -> Result<Option<Deployment>> {
    let filter = DeploymentFilter::default();
    find(client, platform, filter, |deployment| {
        deployment.deployment_id == id
    })
    .await
}

/// Returns the newest deployment in a list for which a function returns `true`.
async fn find(
    client: &Client,
    platform: &str,
    mut filter: DeploymentFilter,
    mut is_wanted: impl FnMut(&Deployment) -> bool,
) -> Result<Option<Deployment>> {
    filter.page.limit = Some(100);
    for _ in 0..MAX_PAGES {
        let page = client.list_deployments(platform, &filter).await?;
        if let Some(found) = page.data.into_iter().find(&mut is_wanted) {
            return Ok(Some(found));
        }
        if page.cursor.is_none() {
            return Ok(None);
        }
        filter.page.cursor = page.cursor;
    }
    Ok(None)
}
