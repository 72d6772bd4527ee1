//! `app.create`: makes an app of a workspace stack. What is there of it already is left as it is.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::stack_parts::{MakesParts, with_parts};
use super::stack_target::{PlannedPart, StackInput, StackTarget, StackWork};
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::WorkspaceStack;
use crate::stacks::{AppName, AppType, PartId, StackPart, parts_of_app};
use crate::use_case::provisioning::{JobContext, JobKind, Steps};
use crate::use_case::registry::stack_instance::entries;

/// What is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct NewApp {
    pub(in crate::use_case::registry) app_name: AppName,
    pub(in crate::use_case::registry) app_type: AppType,
    pub(in crate::use_case::registry) with_database: bool,
    /// What is made, in this order.
    pub(in crate::use_case::registry) parts: Vec<PlannedPart>,
}

impl StackWork for NewApp {
    fn is_called_for(stack: &WorkspaceStack, _job: &Job) -> bool {
        stack.takes_apps()
    }
}

#[async_trait]
impl MakesParts for NewApp {
    fn parts(&self) -> &[PlannedPart] {
        &self.parts
    }

    async fn blueprint(
        &self,
        _target: &StackTarget,
        _uow: &mut dyn UnitOfWork,
        part: &PartId,
    ) -> Result<Option<StackPart>> {
        let parts = parts_of_app(&self.app_name, self.app_type, self.with_database);
        Ok(parts.into_iter().find(|made_of| made_of.id == *part))
    }
}

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct AppCreate;

#[async_trait]
impl JobKind for AppCreate {
    const NAME: &'static str = "app.create";
    type Input = StackInput<NewApp>;

    fn steps() -> Steps<Self> {
        with_parts(Steps::new())
    }

    fn plan(input: &Self::Input) -> Vec<String> {
        input.work.parts.iter().map(PlannedPart::step).collect()
    }

    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        settle(cx, uow).await
    }

    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        settle(cx, uow).await
    }

    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let of = (&cx.input.target, &cx.job.id);
        entries::enter_planned(cx, &platform, uow, of, &cx.input.work.parts).await
    }
}

async fn settle(cx: &JobContext<'_, AppCreate>, uow: &mut dyn UnitOfWork) -> Result<()> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(());
    };
    entries::settle_unmade(cx, &platform, uow, cx.job, &cx.input.work.parts).await
}
