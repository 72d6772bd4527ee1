//! The job kind: a report of a month, in two steps. Each step first observes whether its effect already exists. A crash
//! at any point, or a second worker, therefore creates no second report.

use std::path::PathBuf;

use async_trait::async_trait;
use core_suite::jobs::{
    JobInput, JobKind, JobStep, LaneKey, Observation, PlatformId, StepContext, StepError, Steps,
    Undone, Unowned,
};
use serde::{Deserialize, Serialize};

/// The input of the job. It is stored with the job and shown to operators, so it must not contain secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Month {
    pub(crate) month: String,
}

impl JobInput for Month {
    /// The job belongs to no platform of the suite. The input of a kind that belongs to one uses `PlatformOwned` and
    /// names it.
    type Owner = Unowned;

    /// Jobs of one lane run one after the other, jobs of different lanes concurrently.
    fn lane(&self) -> LaneKey {
        LaneKey::host("reports")
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }

    /// There is one job per month, however often it is requested.
    fn idempotency_key(&self) -> Option<String> {
        Some(format!("report:{}", self.month))
    }
}

/// The job kind, with the folder that its steps write to.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) folder: PathBuf,
}

impl JobKind for Report {
    const NAME: &'static str = "report";
    /// The kind writes no records of its own when a job ends.
    const HAS_HOOKS: bool = false;
    type Input = Month;

    fn steps() -> Steps<Self> {
        Steps::new().step(Count).step(Publish)
    }
}

/// Computes figures. The step has no effect, so there is nothing to observe.
#[derive(Debug)]
struct Count;

#[async_trait]
impl JobStep<Report> for Count {
    const HAS_RECORD: bool = false;
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

/// Writes the report file. Its name is derived from the input.
#[derive(Debug)]
struct Publish;

#[async_trait]
impl JobStep<Report> for Publish {
    const HAS_RECORD: bool = false;
    const CAN_UNDO: bool = true;
    type Output = PathBuf;

    fn name(&self) -> &'static str {
        "publish"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Report>,
    ) -> Result<Observation<PathBuf>, StepError> {
        let file = file(cx);
        match tokio::fs::try_exists(&file).await.map_err(file_error)? {
            true => Ok(Observation::Present(file)),
            false => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, Report>) -> Result<PathBuf, StepError> {
        let file = file(cx);
        let digits = cx.job.output_of("count").cloned().unwrap_or_default();
        let text = format!("{}: {digits} digits\n", cx.input.month);
        // Write to a temporary file and rename it, so that the report is complete or missing.
        let unfinished = file.with_extension("part");
        tokio::fs::write(&unfinished, text)
            .await
            .map_err(file_error)?;
        tokio::fs::rename(&unfinished, &file)
            .await
            .map_err(file_error)?;
        Ok(file)
    }

    /// Deletes the report of a cancelled job. A report that existed before the job stays.
    async fn undo(&self, cx: &StepContext<'_, Report>) -> Result<Undone, StepError> {
        match tokio::fs::remove_file(file(cx)).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file_error(error)),
            _ => Ok(Undone::Removed),
        }
    }
}

fn file(cx: &StepContext<'_, Report>) -> PathBuf {
    let Report { folder } = cx.kind;
    folder.join(format!("report-{}.txt", cx.input.month))
}

/// Returns a transient error. The suite retries after growing pauses, and involves an operator after the eighth
/// attempt.
fn file_error(error: std::io::Error) -> StepError {
    StepError::transient(format!("the report could not be written: {}", error.kind()))
}
