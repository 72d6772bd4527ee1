//! The job kinds of the host program.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use core_suite::jobs::{
    JobInput, JobKind, JobStep, LaneKey, Observation, PlatformId, StepContext, StepError, Steps,
    Unowned,
};
use serde::{Deserialize, Serialize};

/// The name of a job. There is one job per name, in its own lane.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Name(pub(crate) String);

impl JobInput for Name {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        LaneKey::host(&self.0)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }

    fn idempotency_key(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// Creates one file per step. A step that runs again adds a second line to its file.
#[derive(Debug)]
pub(crate) struct Steady {
    pub(crate) objects: PathBuf,
}

impl JobKind for Steady {
    const NAME: &'static str = "steady";
    const HAS_HOOKS: bool = false;
    type Input = Name;

    fn steps() -> Steps<Self> {
        Steps::new().steps(["first", "second", "third"].map(MakeFile))
    }
}

#[derive(Debug)]
struct MakeFile(&'static str);

impl MakeFile {
    fn file(&self, cx: &StepContext<'_, Steady>) -> PathBuf {
        cx.kind.objects.join(format!("{}-{}", cx.input.0, self.0))
    }
}

#[async_trait]
impl JobStep<Steady> for MakeFile {
    const HAS_RECORD: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        self.0
    }

    async fn observe(&self, cx: &StepContext<'_, Steady>) -> Result<Observation<()>, StepError> {
        match self.file(cx).exists() {
            true => Ok(Observation::Present(())),
            false => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, Steady>) -> Result<(), StepError> {
        let failed = |error: std::io::Error| StepError::transient(error.to_string());
        std::fs::create_dir_all(&cx.kind.objects).map_err(failed)?;
        let mut options = std::fs::File::options();
        let file = options.create(true).append(true).open(self.file(cx));
        let mut file = file.map_err(failed)?;
        writeln!(file, "{}", cx.effect_key).map_err(failed)
    }
}

/// Aborts the process that works on it, like a memory fault.
#[derive(Debug)]
pub(crate) struct Poison;

impl JobKind for Poison {
    const NAME: &'static str = "poison";
    const HAS_HOOKS: bool = false;
    type Input = Name;

    fn steps() -> Steps<Self> {
        Steps::new().step(Abort)
    }
}

/// The time in which other jobs can be worked on. Jobs that run at every crash of the process would fail as well.
const BEFORE_ABORT: Duration = Duration::from_millis(700);

#[derive(Debug)]
struct Abort;

#[async_trait]
impl JobStep<Poison> for Abort {
    const HAS_RECORD: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        "abort"
    }

    async fn observe(&self, _: &StepContext<'_, Poison>) -> Result<Observation<()>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, _: &StepContext<'_, Poison>) -> Result<(), StepError> {
        tokio::time::sleep(BEFORE_ABORT).await;
        std::process::abort()
    }
}
