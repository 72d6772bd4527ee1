//! Defines a job kind of the host program and runs it with the provisioning engine: `cargo run -p core-jobs`.
//!
//! The host registers the kind with the builder. `build` starts the worker on the host's tokio runtime, with
//! `worker_slots` slots; `shutdown` releases the running jobs. The second half of the program acts like another
//! process: it finds the jobs that the first half left in the database, and continues them.

mod report;

use std::io::Write;
use std::path::Path;

use core_suite::jobs::{JobId, JobStatus, JobView};
use core_suite::{Suite, SuiteError};

use crate::report::{Month, Report};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const MONTHS: [&str; 3] = ["2026-09", "2026-10", "2026-11"];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;

    let suite = start(folder.path()).await?;
    let mut jobs = Vec::new();
    for month in MONTHS {
        let month = month.to_owned();
        jobs.push(suite.jobs().enqueue::<Report>(&Month { month }).await?);
    }
    // Stop at once: jobs that have started are finished or released, and no attempt is counted.
    suite.shutdown().await;

    let suite = start(folder.path()).await?;
    for job in &jobs {
        say(&suite.jobs().wait_until_ended(job).await?)?;
    }
    let month = MONTHS[0].to_owned();
    let again: JobId = suite.jobs().enqueue::<Report>(&Month { month }).await?;
    assert_eq!(again, jobs[0], "the idempotency key leads to the same job");
    suite.shutdown().await;
    Ok(())
}

async fn start(folder: &Path) -> Result<Suite, SuiteError> {
    let report = Report {
        folder: folder.to_owned(),
    };
    Suite::builder()
        .sqlite(folder.join("core.db"))
        .data_folder(folder.join("data"))
        .service_key("a-key-of-this-example")
        .job_kind(report)
        .worker_slots(4)
        .build()
        .await
}

fn say(seen: &JobView) -> Result<(), Failure> {
    let (job, progress) = (&seen.job, &seen.progress);
    assert_eq!((job.status, job.attempts), (JobStatus::Completed, 0));
    let file = job.output_of("publish").and_then(|file| file.as_str());
    let text = std::fs::read_to_string(file.unwrap_or_default())?;
    writeln!(
        std::io::stdout(),
        "{} {} ({} of {} steps): {}",
        job.kind,
        job.status,
        progress.completed_steps,
        progress.total_steps,
        text.trim_end()
    )?;
    Ok(())
}
