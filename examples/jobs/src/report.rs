//! The kind: a report of a month, in two steps. Each looks first whether its effect has happened, so that a crash at any
//! point, or a second worker, makes no second report.

use std::path::PathBuf;

use async_trait::async_trait;
use core_suite::jobs::{
    JobInput, JobKind, JobStep, LaneKey, Observation, PlatformId, StepContext, StepError, Steps,
    Undone, Unowned,
};
use serde::{Deserialize, Serialize};

/// What is asked for. It is kept with the job and shown to operators: never a secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Month {
    pub(crate) month: String,
}

impl JobInput for Month {
    /// About no platform of the suite. The input of a kind that is about one says `PlatformOwned`, and names it.
    type Owner = Unowned;

    /// Jobs of a lane run one after the other, those of different lanes side by side.
    fn lane(&self) -> LaneKey {
        LaneKey::own("reports")
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }

    /// However often a month is asked for, there is one job.
    fn idempotency_key(&self) -> Option<String> {
        Some(format!("report:{}", self.month))
    }
}

/// The kind, with what its steps work with.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) folder: PathBuf,
}

impl JobKind for Report {
    const NAME: &'static str = "report";
    /// Nothing is to be written when a job ends.
    const HOOKS: bool = false;
    type Input = Month;

    fn steps() -> Steps<Self> {
        Steps::new().then(Count).then(Publish)
    }
}

/// Makes figures: without an effect, so there is nothing to look for.
#[derive(Debug)]
struct Count;

#[async_trait]
impl JobStep<Report> for Count {
    const RECORDS: bool = false;
    type Output = u64;

    fn name(&self) -> &'static str {
        "count"
    }

    async fn observe(&self, _: &StepContext<'_, Report>) -> Result<Observation<u64>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, Report>) -> Result<u64, StepError> {
        let letters = cx.input.month.chars().filter(char::is_ascii_digit);
        Ok(letters.count() as u64)
    }
}

/// Writes the file, under a name that follows from the input.
#[derive(Debug)]
struct Publish;

#[async_trait]
impl JobStep<Report> for Publish {
    const RECORDS: bool = false;
    const UNDOES: bool = true;
    type Output = PathBuf;

    fn name(&self) -> &'static str {
        "publish"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Report>,
    ) -> Result<Observation<PathBuf>, StepError> {
        let file = file(cx);
        match tokio::fs::try_exists(&file).await.map_err(failed)? {
            true => Ok(Observation::Present(file)),
            false => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, Report>) -> Result<PathBuf, StepError> {
        let file = file(cx);
        let digits = cx.job.output_of("count").cloned().unwrap_or_default();
        let text = format!("{}: {digits} digits\n", cx.input.month);
        // Whole or not at all.
        let unfinished = file.with_extension("part");
        tokio::fs::write(&unfinished, text).await.map_err(failed)?;
        tokio::fs::rename(&unfinished, &file)
            .await
            .map_err(failed)?;
        Ok(file)
    }

    /// A job that is cancelled leaves no report of its own; one that was there before it stays.
    async fn undo(&self, cx: &StepContext<'_, Report>) -> Result<Undone, StepError> {
        match tokio::fs::remove_file(file(cx)).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(Undone::TakenBack),
        }
    }
}

fn file(cx: &StepContext<'_, Report>) -> PathBuf {
    let Report { folder } = cx.kind;
    folder.join(format!("report-{}.txt", cx.input.month))
}

/// Worth another try; the suite waits longer each time, and asks an operator after the eighth.
fn failed(error: std::io::Error) -> StepError {
    StepError::transient(format!("the report could not be written: {}", error.kind()))
}
