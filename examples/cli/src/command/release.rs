//! Decides which deployment is live: rollback, promotion, pins.

use std::collections::HashMap;

use core_client::Client;
use core_client::types::deployment::{Deployment, PRODUCTION};

use super::deployments::{find_active, find_live, list_active, no_live_deployment};
use super::follow::report_deployment;
use crate::args::{PromoteArgs, RollbackArgs};
use crate::context::Context;
use crate::failure::{Failure, FailureKind, Result};
use crate::output::confirm;
use crate::text::{or_dash, time};

/// Makes an earlier deployment live again.
pub(crate) async fn roll_back(context: &Context, args: &RollbackArgs) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let id = match &args.deployment {
        Some(id) => id.clone(),
        None => {
            let earlier = find_earlier(&client, &platform).await?;
            context.output.note(&format!(
                "The deployment before the live one is {} of {}: {}",
                earlier.deployment_id,
                time(Some(earlier.created_at)),
                or_dash(earlier.message.as_deref()),
            ));
            earlier.deployment_id
        }
    };
    confirm(
        context.yes,
        &format!("Make the deployment {id} live again?"),
    )?;
    let queued = client
        .roll_back_deployment(&platform, &id)
        .await
        .map_err(explain)?;
    report_deployment(context, &client, &platform, &queued, args.no_wait).await
}

/// Returns the deployment to production before the live one.
async fn find_earlier(client: &Client, platform: &str) -> Result<Deployment> {
    let mut deployments = list_active(client, platform, PRODUCTION).await?;
    match position_before_live(&deployments)? {
        Some(position) => Ok(deployments.swap_remove(position)),
        None => Err(Failure::new(
            FailureKind::NotFound,
            "There is no deployment before the live one.",
        )
        .hint("Name one: core-cli rollback ID. `core-cli deployments` lists them.")),
    }
}

/// Returns the position of the deployment before the live one in a list, newest first. A rollback counts as the deployment
/// whose content it repeats, so that repeated rollbacks go further back. A promotion has a source too, but on another
/// branch, and counts as a deployment of its own.
fn position_before_live(deployments: &[Deployment]) -> Result<Option<usize>> {
    let live = deployments
        .iter()
        .position(|deployment| deployment.is_live)
        .ok_or_else(|| no_live_deployment(PRODUCTION))?;
    let positions: HashMap<_, _> = deployments
        .iter()
        .enumerate()
        .map(|(position, deployment)| (deployment.deployment_id.as_str(), position))
        .collect();
    let repeated = |deployment: &Deployment| {
        let source = deployment.source_deployment_id.as_deref()?;
        positions.get(source).copied()
    };
    let position = repeated(&deployments[live]).unwrap_or(live);
    let mut earlier = position + 1..deployments.len();
    Ok(earlier.find(|position| repeated(&deployments[*position]).is_none()))
}

/// Makes a preview live.
pub(crate) async fn promote(context: &Context, args: &PromoteArgs) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    confirm(
        context.yes,
        &format!("Make the deployment {} live?", args.deployment),
    )?;
    let promoted = client.promote_deployment(&platform, &args.deployment).await;
    let queued = promoted.map_err(explain)?;
    report_deployment(context, &client, &platform, &queued, args.no_wait).await
}

/// Pins production to its live deployment.
pub(crate) async fn pin(context: &Context, deployment: Option<String>) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let id = match deployment {
        Some(id) => id,
        None => {
            find_live(&client, &platform, PRODUCTION)
                .await?
                .deployment_id
        }
    };
    let pinned = client
        .pin_deployment(&platform, &id)
        .await
        .map_err(explain)?;
    context.output.result(&pinned, |pinned| {
        format!("Production is pinned to {}. Other deployments to it are refused until `core-cli unpin`.", pinned.deployment_id)
    })
}

/// Ends the pin of production.
pub(crate) async fn unpin(context: &Context, deployment: Option<String>) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let id = match deployment {
        Some(id) => id,
        None => {
            let pinned = find_active(&client, &platform, PRODUCTION, |deployment| {
                deployment.is_pinned
            })
            .await?;
            let Some(pinned) = pinned else {
                return Err(Failure::new(
                    FailureKind::NotFound,
                    "Production is not pinned.",
                ));
            };
            pinned.deployment_id
        }
    };
    let unpinned = client.unpin_deployment(&platform, &id).await?;
    context.output.result(&unpinned, |_| {
        "Production accepts deployments again.".to_owned()
    })
}

/// Adds the next step to a conflict.
fn explain(error: core_client::Error) -> Failure {
    let Some(api) = error.api().filter(|api| api.status == 409) else {
        return error.into();
    };
    let hint = if api.details.contains_key("pinnedDeploymentId") {
        "Production is pinned. Run `core-cli unpin` first."
    } else if api.code == "INVALID_STATE" {
        "Only a deployment that was live can be used. `core-cli deployments --status active` lists them."
    } else {
        "Another deployment is in progress. `core-cli deployments` lists it; try again when it has ended."
    };
    Failure::from(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the id of the deployment before the live one. Each deployment has an id and a source; the first is live.
    fn before_live(deployments: &[(&str, Option<&str>)]) -> Option<String> {
        let deployment = |(position, (id, source)): (usize, &(&str, Option<&str>))| {
            let value = json!({
                "deploymentId": id, "status": "active", "branch": "production", "projectName": "site", "url": null,
                "permalink": null, "message": null, "errorMessage": null, "cfDeploymentId": null, "fileCount": 1,
                "totalBytes": 1, "userId": "u", "sourceDeploymentId": source, "isLive": position == 0,
                "isPinned": false, "startedAt": null, "completedAt": null, "createdAt": 0,
            });
            serde_json::from_value(value).unwrap()
        };
        let list: Vec<_> = deployments.iter().enumerate().map(deployment).collect();
        let position = position_before_live(&list).unwrap()?;
        Some(list[position].deployment_id.clone())
    }

    #[test]
    fn the_deployment_before_the_live_content_is_found() {
        for (list, expected) in [
            (&[("d2", None), ("d1", None)][..], Some("d1")),
            (&[("d1", None)], None),
            // A rollback to d2.
            (
                &[("r", Some("d2")), ("d3", None), ("d2", None), ("d1", None)],
                Some("d1"),
            ),
            (&[("r", Some("d1")), ("d2", None), ("d1", None)], None),
            // A rollback among the earlier ones.
            (
                &[("d3", None), ("r", Some("d1")), ("d2", None), ("d1", None)],
                Some("d2"),
            ),
            // Promotions of previews.
            (&[("p", Some("preview")), ("d1", None)], Some("d1")),
            (
                &[("d2", None), ("p", Some("preview")), ("d1", None)],
                Some("p"),
            ),
            (
                &[
                    ("r", Some("p")),
                    ("d2", None),
                    ("p", Some("preview")),
                    ("d1", None),
                ],
                Some("d1"),
            ),
        ] {
            assert_eq!(before_live(list).as_deref(), expected, "{list:?}");
        }
    }
}
