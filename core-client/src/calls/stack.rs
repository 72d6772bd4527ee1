//! Stack templates, their activation, and workspace stacks.

use crate::client::Client;
use crate::error::{Error, Result};
use crate::operations::{
    ACTIVATE_STACK, CREATE_WORKSPACE_STACK, GET_STACK_TEMPLATE, LIST_WORKSPACE_STACKS,
};
use crate::types::job::{JobOrPlan, JobPlan, JobRef};
use crate::types::page::{Page, PageQuery};
use crate::types::stack::{
    ActivateStack, CreateWorkspaceStack, CreatedStack, StackTemplate, WorkspaceStack,
};

impl Client {
    /// Returns a stack template.
    ///
    /// # Errors
    /// [`Error::Api`] with the status 404 if there is no such template.
    pub async fn get_stack_template(&self, name: &str) -> Result<StackTemplate> {
        let detail = self.call(GET_STACK_TEMPLATE, &[name]).send().await?;
        Ok(detail.template)
    }

    /// Activates a stack on a platform. A job creates its resources.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn activate_stack(&self, stack: &ActivateStack) -> Result<JobRef> {
        match self.call(ACTIVATE_STACK, &[]).send(stack).await? {
            JobOrPlan::Job(job) => Ok(job),
            JobOrPlan::Plan(_) => Err(unexpected_reply("a plan instead of a job")),
        }
    }

    /// Returns the plan of an activation without executing it.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn plan_stack_activation(&self, stack: &ActivateStack) -> Result<JobPlan> {
        let call = self.call(ACTIVATE_STACK, &[]).query("dryRun", Some(true));
        match call.send(stack).await? {
            JobOrPlan::Plan(dry_run) => Ok(dry_run.plan),
            JobOrPlan::Job(_) => Err(unexpected_reply("a job instead of a plan")),
        }
    }

    /// Lists the workspace stacks of a platform.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn list_workspace_stacks(
        &self,
        platform: &str,
        page: &PageQuery,
    ) -> Result<Page<WorkspaceStack>> {
        let call = self
            .call(LIST_WORKSPACE_STACKS, &[platform])
            .query("limit", page.limit);
        call.query("cursor", page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }

    /// Creates the default workspace stack of an entity.
    ///
    /// # Errors
    /// [`Error`] of the request.
    pub async fn create_default_stack(
        &self,
        platform: &str,
        entity: &str,
        name: &str,
    ) -> Result<CreatedStack> {
        let body = CreateWorkspaceStack {
            tenant_id: entity.to_owned(),
            name: name.to_owned(),
            is_default: true,
        };
        self.call(CREATE_WORKSPACE_STACK, &[platform])
            .send(&body)
            .await
    }
}

fn unexpected_reply(problem: &str) -> Error {
    Error::Decode {
        operation: ACTIVATE_STACK.name,
        problem: problem.to_owned(),
    }
}
