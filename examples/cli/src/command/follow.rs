//! Follows deployments and jobs until they have ended.

use core_client::Client;
use core_client::types::deployment::{
    Deployment, DeploymentProgress, DeploymentState, DeploymentStatus, QueuedDeployment,
};
use core_client::types::job::{Job, JobStatus};

use super::deployments::find_by_id;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::text::plain;

/// Waits until a deployment has ended and prints it. Prints at once if `no_wait` is true.
pub(crate) async fn report_deployment(
    context: &Context,
    client: &Client,
    platform: &str,
    queued: &QueuedDeployment,
    no_wait: bool,
) -> Result<()> {
    let id = queued.deployment_id.as_str();
    if no_wait {
        return context.output.result(queued, |queued| {
            format!("{} {}", queued.deployment_id, queued.status)
        });
    }
    let progress = Progress::spinner(context.output, "deploying");
    let watched = watch_deployment(client, platform, id, &progress).await;
    let deployment = match watched {
        Ok(()) => client.get_deployment(platform, id).await,
        // Without the stream, the status alone tells when the deployment has ended.
        Err(_) => client.wait_for_deployment(platform, id).await,
    };
    progress.clear();
    let deployment = deployment?;
    if deployment.status != DeploymentStatus::Active {
        return Err(failure_of(context, &deployment)?);
    }
    // The site is live, so a failure to read more about it is no failure of the command.
    match find_by_id(client, platform, id).await.ok().flatten() {
        Some(deployment) => print_active(context, &deployment),
        None => context.output.result(&deployment, |_| {
            plain(deployment.url.as_deref().unwrap_or(id))
        }),
    }
}

async fn watch_deployment(
    client: &Client,
    platform: &str,
    id: &str,
    progress: &Progress,
) -> core_client::Result<()> {
    let mut events = client.follow_deployment(platform, id).await?;
    let mut last = String::new();
    while let Some(event) = events.next().await? {
        let text = describe(&event);
        if text != last {
            progress.set_message(&text);
            last = text;
        }
    }
    Ok(())
}

fn describe(progress: &DeploymentProgress) -> String {
    let step = progress
        .event
        .as_ref()
        .and_then(|event| event.step.as_deref());
    match step {
        Some(step) => format!("{}: {}", progress.deployment.status, plain(step)),
        None => progress.deployment.status.to_string(),
    }
}

fn print_active(context: &Context, deployment: &Deployment) -> Result<()> {
    context.output.result(deployment, |deployment| {
        let url = deployment.url.as_deref();
        let url = plain(url.unwrap_or(&deployment.deployment_id));
        match &deployment.permalink {
            Some(permalink) if Some(permalink) != deployment.url.as_ref() => {
                format!("{url}\n{} (this deployment)", plain(permalink))
            }
            _ => url,
        }
    })
}

/// Returns the failure of the command for a deployment that ended without success. Prints the status if the output is JSON.
fn failure_of(context: &Context, deployment: &DeploymentState) -> Result<Failure> {
    if context.output.is_json() {
        context.output.result(deployment, |_| String::new())?;
    }
    let reason = deployment
        .error_message
        .as_deref()
        .unwrap_or("no reason is recorded");
    Ok(Failure::other(format!(
        "The deployment {} ended with the status {}: {}",
        deployment.deployment_id,
        deployment.status,
        plain(reason)
    ))
    .hint("The live site is unchanged."))
}

/// Prints the events of a job until it has ended.
pub(crate) async fn report_job(context: &Context, client: &Client, id: &str) -> Result<()> {
    let progress = Progress::spinner(context.output, "working");
    let watched = watch_job(client, id, &progress).await;
    let job = match watched {
        Ok(()) => client.get_job(id).await,
        Err(error) if error.api().is_some_and(|error| error.status == 404) => Err(error),
        Err(_) => client.wait_for_job(id).await,
    };
    progress.clear();
    let job = job?;
    if job.status.is_final() {
        return print_job(context, &job);
    }
    let job = client.wait_for_job(id).await?;
    print_job(context, &job)
}

async fn watch_job(client: &Client, id: &str, progress: &Progress) -> core_client::Result<()> {
    let mut events = client.follow_job(id).await?;
    while let Some(event) = events.next().await? {
        let done = format!(
            "{}/{}",
            event.progress.completed_steps, event.progress.total_steps
        );
        let details = [event.event.step.as_deref(), event.event.reason.as_deref()];
        let details: Vec<_> = details.into_iter().flatten().collect();
        let event_type = &event.event.event_type;
        progress.set_message(&plain(&format!(
            "{done} {event_type} {}",
            details.join(" ")
        )));
    }
    Ok(())
}

fn print_job(context: &Context, job: &Job) -> Result<()> {
    if job.status == JobStatus::Completed || context.output.is_json() {
        context.output.result(job, |job| {
            format!("{} {} {}", job.job_id, job.kind, job.status)
        })?;
    }
    if job.status == JobStatus::Completed {
        return Ok(());
    }
    let reason = job
        .error
        .as_ref()
        .map_or("no reason is recorded", |error| error.message.as_str());
    Err(
        Failure::other(format!("The job {} failed: {}", job.job_id, plain(reason)))
            .hint("An operator can retry it: core-cli jobs retry JOB"),
    )
}
