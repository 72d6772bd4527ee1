//! `onboard`: makes organization, platform and tenant, then the platform's resources.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::make::MakeResource;
use super::platform_kind::{STEPS as RESOURCE_STEPS, maker, makers};
use super::{Target, as_asked_by, read_input, to_input};
use crate::kernel::{Context, OnboardingId, Result};
use crate::port::UnitOfWork;
use crate::provisioning::{Job, JobKind, JobStep, Observation, StepContext, StepError};
use crate::registry::OnboardingStatus;
use crate::use_case::registry::onboarding::{make_onboarded, note};

pub(in crate::use_case::registry) const NAME: &str = "onboard";

const PLATFORM: &str = "platform";

/// The platform, then a step for every resource.
pub(in crate::use_case::registry) const STEPS: [&str; 7] = {
    let mut steps = [PLATFORM; 7];
    let mut at = 0;
    while at < RESOURCE_STEPS.len() {
        steps[at + 1] = RESOURCE_STEPS[at];
        at += 1;
    }
    steps
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    onboarding_id: OnboardingId,
    #[serde(flatten)]
    target: Target,
}

/// The input of the job of an onboarding.
pub(in crate::use_case::registry) fn input(onboarding: &OnboardingId, target: &Target) -> Value {
    to_input(&Input {
        onboarding_id: onboarding.clone(),
        target: target.clone(),
    })
}

/// The kind.
#[derive(Debug)]
pub(super) struct Onboard {
    platform: MakePlatform,
    makers: [MakeResource; 6],
}

impl Onboard {
    pub(super) fn new() -> Self {
        Self {
            platform: MakePlatform,
            makers: makers(),
        }
    }
}

#[async_trait]
impl JobKind for Onboard {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&self, name: &str) -> Option<&dyn JobStep> {
        if name == PLATFORM {
            return Some(&self.platform);
        }
        maker(&self.makers, name)
    }

    async fn completed(&self, _cx: &Context, uow: &mut dyn UnitOfWork, job: &Job) -> Result<()> {
        let input: Input = read_input(job)?;
        let platform = input.target.platform_id;
        // Declared done by an operator before there was a platform: then there is none.
        let status = if uow.platforms().get(platform.as_str()).await?.is_some() {
            OnboardingStatus::Completed
        } else {
            OnboardingStatus::Failed
        };
        note(uow, &input.onboarding_id, status).await
    }

    async fn failed(&self, _cx: &Context, uow: &mut dyn UnitOfWork, job: &Job) -> Result<()> {
        let input: Input = read_input(job)?;
        note(uow, &input.onboarding_id, OnboardingStatus::Failed).await
    }

    async fn resumed(&self, _cx: &Context, uow: &mut dyn UnitOfWork, job: &Job) -> Result<()> {
        let input: Input = read_input(job)?;
        note(uow, &input.onboarding_id, OnboardingStatus::Open).await
    }
}

/// Makes organization, platform and tenant. All of it is rows, so all of it happens with the end of the step.
#[derive(Debug)]
struct MakePlatform;

#[async_trait]
impl JobStep for MakePlatform {
    async fn observe(&self, _cx: &StepContext<'_>) -> Result<Observation, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError> {
        let input: Input = read_input(cx.job)?;
        Ok(json!({ "platformId": input.target.platform_id }))
    }

    async fn record(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        job: &Job,
        _output: &Value,
    ) -> Result<()> {
        let input: Input = read_input(job)?;
        make_onboarded(&as_asked_by(cx, job), uow, &input.onboarding_id).await?;
        Ok(())
    }
}
