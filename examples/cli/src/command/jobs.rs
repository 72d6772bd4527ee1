//! Lists, watches and retries jobs.

use core_client::PageQuery;
use core_client::types::job::{Job, JobFilter, JobStatus};

use super::follow::report_job;
use crate::args::JobsCommand;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::text::{or_dash, short_time};

/// Runs a command about jobs.
pub(crate) async fn run(context: &Context, command: JobsCommand) -> Result<()> {
    match command {
        JobsCommand::List { status, limit } => list(context, status, limit).await,
        JobsCommand::Watch { job } => report_job(context, &context.client()?, &job).await,
        JobsCommand::Retry { job } => retry(context, &job).await,
    }
}

async fn list(context: &Context, status: Option<JobStatus>, limit: u32) -> Result<()> {
    let client = context.client()?;
    let platform_id = Some(context.platform(&client).await?);
    let page = PageQuery {
        limit: Some(limit),
        cursor: None,
    };
    let page = client
        .list_jobs(
            &JobFilter {
                platform_id,
                status,
            },
            &page,
        )
        .await?;
    let header = ["ID", "KIND", "STATUS", "PROGRESS", "CREATED (UTC)", "NOTE"];
    context.output.list(&page.data, &header, |job| {
        vec![
            job.job_id.clone(),
            job.kind.clone(),
            job.status.to_string(),
            format!(
                "{}/{}",
                job.progress.completed_steps, job.progress.total_steps
            ),
            short_time(&job.created_at),
            or_dash(note(job)),
        ]
    })
}

/// Returns the reason why a job waits or failed.
fn note(job: &Job) -> Option<&str> {
    let error = job.error.as_ref().map(|error| error.message.as_str());
    let waits = job.waiting_for.as_deref().or(job.hold_reason.as_deref());
    if job.status == JobStatus::Completed {
        None
    } else {
        waits.or(error)
    }
}

async fn retry(context: &Context, job: &str) -> Result<()> {
    let client = context.client()?;
    let retried = client
        .retry_job(job)
        .await
        .map_err(|error| match error.status() {
            Some(403) => Failure::from(error)
                .hint("Only operators retry jobs. Use an operator's sign-in or the service key."),
            Some(409) => {
                Failure::from(error).hint("Only a failed, queued or waiting job can be retried.")
            }
            _ => error.into(),
        })?;
    context.output.result(&retried, |retried| {
        format!("{} {}", retried.job_id, retried.status)
    })
}
