//! A kind of jobs of a host's own, on the engine that provisions: `cargo run -p core-jobs`.
//!
//! The host registers the kind with the builder; `build` starts the worker on the host's own tokio runtime, with as many
//! slots as `worker_slots` says, and `shutdown` hands back what runs. The second part of the program is another process for
//! all that matters: it finds what the first has left in the database and goes on with it.

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
    // At once: what has begun is finished or handed back, and no attempt is counted.
    suite.shutdown().await;

    let suite = start(folder.path()).await?;
    for job in &jobs {
        say(&suite.jobs().until_ended(job).await?)?;
    }
    let month = MONTHS[0].to_owned();
    let again: JobId = suite.jobs().enqueue::<Report>(&Month { month }).await?;
    assert_eq!(again, jobs[0], "the key makes it the same job");
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
