//! Decides which deployment is live: rollback, promotion, pins.

use core_client::Client;
use core_client::types::deployment::{Deployment, PRODUCTION};

use super::deployments::{find_active, find_live};
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

/// Returns the deployment to production before the live one. A live rollback counts as the deployment whose content it
/// repeats, so that repeated rollbacks go further back.
async fn find_earlier(client: &Client, platform: &str) -> Result<Deployment> {
    let live = find_live(client, platform, PRODUCTION).await?;
    let position = live.source_deployment_id.unwrap_or(live.deployment_id);
    let mut has_passed = false;
    let earlier = find_active(client, platform, PRODUCTION, |deployment| {
        if deployment.deployment_id == position {
            has_passed = true;
            return false;
        }
        has_passed && deployment.source_deployment_id.is_none()
    });
    earlier.await?.ok_or_else(|| {
        Failure::new(
            FailureKind::NotFound,
            "There is no deployment before the live one.",
        )
        .hint("Name one: core-cli rollback ID. `core-cli deployments` lists them.")
    })
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
