//! `platform.deprovision`: removes what the registry knows of a platform, what jobs created without being able to say so, and
//! what the provider still has of it: hostnames first, then a step for every type, in the opposite order of creation. A step
//! ends when nothing is left.

use async_trait::async_trait;

use super::cancel_jobs::{CANCEL_JOBS, CancelJobs};
use super::deprovision_input::Removal;
use super::remove_hostnames::RemoveHostnames;
use super::remove_resources::RemoveResources;
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::provisioning::{DEPROVISION, LanePlace};
use crate::registry::DEFAULT_RESOURCES;
use crate::use_case::provisioning::{JobContext, JobKind, Steps};
use crate::use_case::registry::platform::{Covered, finish_deprovision};

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Deprovision;

#[async_trait]
impl JobKind for Deprovision {
    const NAME: &'static str = DEPROVISION;
    const VERSION: i64 = 2;
    const PLACE: LanePlace = LanePlace::Front;
    type Input = Removal;

    fn steps() -> Steps<Self> {
        let newest_first = DEFAULT_RESOURCES.into_iter().rev();
        let hostnames = Steps::new().then(CancelJobs).then(RemoveHostnames);
        hostnames.then_all(newest_first.map(|(resource_type, _)| RemoveResources(resource_type)))
    }

    fn plan(input: &Removal) -> Vec<String> {
        let names = Self::steps().names().into_iter();
        let wanted = names.filter(|name| *name != CANCEL_JOBS || input.cancels_jobs);
        wanted.map(str::to_owned).collect()
    }

    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let covered = Covered {
            environment: cx.input.environment,
            everything: cx.input.environment.is_none() && !cx.job.forced,
        };
        finish_deprovision(cx, &platform, uow, covered).await
    }
}
