//! `onboard`: creates organization, platform and tenant, and hands over to a job in the platform's own lane.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::deprovision::{Deprovision, Removal};
use super::provision::ProvisionPlatform;
use super::target::Target;
use crate::access::{PlatformWriter, SystemScope};
use crate::kernel::{Environment, JobId, OnboardingId, PlatformId, Result, Unowned};
use crate::port::{Mode, UnitOfWork};
use crate::provisioning::{JobStatus, LaneKey};
use crate::registry::{OnboardingEvent, PlatformStatus};
use crate::use_case::provisioning::{
    self, JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
    enqueue, enqueue_child,
};
use crate::use_case::registry::onboarding::{create_onboarded, record_event};
use crate::use_case::registry::{entity, platform};

/// The name of the step that creates the platform.
pub(in crate::use_case::registry) const CREATE_PLATFORM: &str = "platform";

/// How often the platform's job is looked at when nobody calls.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What an onboarding job works on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct OnboardInput {
    pub(in crate::use_case::registry) onboarding_id: OnboardingId,
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: Target,
}

impl JobInput for OnboardInput {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        LaneKey::onboarding(&self.onboarding_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        None
    }

    fn environment(&self) -> Option<Environment> {
        Some(self.target.environment)
    }

    fn idempotency_key(&self) -> Option<String> {
        Some(format!("onboarding:{}", self.onboarding_id))
    }
}

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Onboard;

#[async_trait]
impl JobKind for Onboard {
    const NAME: &'static str = "onboard";
    type Input = OnboardInput;

    fn steps() -> Steps<Self> {
        Steps::new().then(CreatePlatform).then(AwaitInfrastructure)
    }

    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let system = SystemScope::new();
        let platform = system.platform(uow, &cx.input.target.platform_id).await?;
        // Declared done by an operator before there was a platform: then there is none.
        let event = if platform.is_some() {
            OnboardingEvent::Complete
        } else {
            OnboardingEvent::Fail
        };
        record_event(cx, system, uow, &cx.input.onboarding_id, event).await
    }

    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let (system, event) = (SystemScope::new(), OnboardingEvent::Fail);
        record_event(cx, system, uow, &cx.input.onboarding_id, event).await
    }

    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let (system, event) = (SystemScope::new(), OnboardingEvent::Resume);
        record_event(cx, system, uow, &cx.input.onboarding_id, event).await
    }
}

/// What the first step leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedPlatform {
    platform_id: PlatformId,
}

/// Creates organization, platform and tenant, and queues the job that gives the platform its resources. All of it is
/// rows, so all of it happens with the end of the step.
#[derive(Clone, Copy, Debug)]
struct CreatePlatform;

#[async_trait]
impl JobStep<Onboard> for CreatePlatform {
    const UNDOES: bool = true;
    type Output = CreatedPlatform;

    fn name(&self) -> &'static str {
        CREATE_PLATFORM
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Onboard>,
    ) -> Result<Observation<CreatedPlatform>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        match find_platform(uow.as_mut(), cx.input).await? {
            Some(platform) if platform.platform().status == PlatformStatus::Deleted => {
                let undone =
                    "the platform was deleted when its onboarding was cancelled: restore it";
                Err(StepError::Precondition(undone.to_owned()))
            }
            _ => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, Onboard>) -> Result<CreatedPlatform, StepError> {
        Ok(CreatedPlatform {
            platform_id: cx.input.target.platform_id.clone(),
        })
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Onboard>,
        uow: &mut dyn UnitOfWork,
        _output: &CreatedPlatform,
    ) -> Result<()> {
        let (platform, entity_id) = match find_platform(uow, cx.input).await? {
            // It was undone, and somebody restored it.
            Some(platform) => {
                let tenant = entity::default_tenant(cx, &platform, uow).await?;
                (platform, tenant.id.clone())
            }
            None => {
                let (system, onboarding) = (SystemScope::new(), &cx.input.onboarding_id);
                let tenant = create_onboarded(cx, system, uow, onboarding).await?;
                (tenant.platform, tenant.entity_id)
            }
        };
        let target = Target {
            entity_id: Some(entity_id),
            ..cx.input.target.clone()
        };
        let parent = Some(&cx.job.id);
        enqueue_child::<ProvisionPlatform>(cx, &platform, uow, &target, parent).await?;
        Ok(())
    }

    /// Deletes the platform, which can be restored, and queues the job that removes its infrastructure; the job that makes
    /// it finds its platform gone. The organization stays: its owner may have invited others by now.
    async fn record_undo(
        &self,
        cx: &JobContext<'_, Onboard>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        let Some(platform) = find_platform(uow, cx.input).await? else {
            return Ok(());
        };
        if !platform::delete_undone(cx, &platform, uow).await? {
            return Ok(());
        }
        let target = &cx.input.target;
        let removal = Removal {
            platform_id: target.platform_id.clone(),
            slug: target.slug.clone(),
            environment: Some(target.environment),
        };
        enqueue::<Deprovision>(cx, &platform, uow, &removal).await?;
        Ok(())
    }
}

/// The platform of an onboarding, once it was created.
async fn find_platform(
    uow: &mut dyn UnitOfWork,
    input: &OnboardInput,
) -> Result<Option<PlatformWriter>> {
    let system = SystemScope::new();
    system.platform(uow, &input.target.platform_id).await
}

/// What the second step leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Infrastructure {
    job_id: JobId,
}

/// Waits until the job in the platform's lane has created the platform's resources.
#[derive(Clone, Copy, Debug)]
struct AwaitInfrastructure;

#[async_trait]
impl JobStep<Onboard> for AwaitInfrastructure {
    const RECORDS: bool = false;
    type Output = Infrastructure;

    fn name(&self) -> &'static str {
        "infrastructure"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Onboard>,
    ) -> Result<Observation<Infrastructure>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let system = SystemScope::new();
        let child = provisioning::child_of(system, uow.as_mut(), &cx.job.id).await?;
        let Some(child) = child else {
            return Ok(Observation::Absent);
        };
        match child.status {
            JobStatus::Completed => Ok(Observation::Present(Infrastructure {
                job_id: child.id.clone(),
            })),
            JobStatus::Failed => Err(StepError::permanent(
                "PLATFORM_JOB_FAILED",
                format!("the job {} of the platform has stopped", child.id),
            )),
            _ => Err(StepError::Wait {
                until: uow.now().await?.plus(LOOK_AGAIN),
                reason: "the platform's infrastructure".to_owned(),
                found: None,
            }),
        }
    }

    async fn apply(&self, _cx: &StepContext<'_, Onboard>) -> Result<Infrastructure, StepError> {
        Err(StepError::permanent(
            "PLATFORM_JOB_MISSING",
            "the job of the platform does not exist any more",
        ))
    }
}
