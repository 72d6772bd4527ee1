//! `platform.deprovision`: removes what the registry knows of a platform, and what a job may have created without being
//! able to say so: hostnames first, then a step for every type, in the opposite order of creation.

use async_trait::async_trait;

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
        let hostnames = Steps::new().then(RemoveHostnames);
        hostnames.then_all(newest_first.map(|(resource_type, _)| RemoveResources(resource_type)))
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
