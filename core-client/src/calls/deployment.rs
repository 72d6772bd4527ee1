//! Deployments of sites.

use crate::calls::waiting::{WAIT_SECONDS, WaitPause};
use crate::client::Client;
use crate::error::Result;
use crate::net::event_stream::{EventStream, StreamEnd};
use crate::net::upload::Upload;
use crate::operations::{
    DEPLOY, FOLLOW_DEPLOYMENT, GET_DEPLOYMENT, LIST_DEPLOYMENTS, PIN_DEPLOYMENT, PLAN_DEPLOYMENT,
    PROMOTE_DEPLOYMENT, ROLL_BACK_DEPLOYMENT, UNPIN_DEPLOYMENT,
};
use crate::types::deployment::{
    DeployOptions, Deployment, DeploymentFilter, DeploymentPlan, DeploymentProgress,
    DeploymentState, PlanDeployment, QueuedDeployment, SiteFile,
};
use crate::types::page::Page;

impl Client {
    /// Plans a deployment: the server returns the files whose content it does not have. A plan is valid for 15 minutes.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 400 if the files break a rule of sites.
    pub async fn plan_deployment(
        &self,
        platform: &str,
        files: Vec<SiteFile>,
    ) -> Result<DeploymentPlan> {
        self.call(PLAN_DEPLOYMENT, &[platform])
            .send(&PlanDeployment { files })
            .await
    }

    /// Deploys an archive: of the complete site, or of the files that a plan misses.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 409 if another deployment of the branch is in progress, or if
    /// contents of the plan have disappeared since; 404 if the plan has expired.
    pub async fn deploy(
        &self,
        platform: &str,
        archive: Upload,
        options: &DeployOptions,
    ) -> Result<QueuedDeployment> {
        let call = self.call(DEPLOY, &[platform]);
        let call = call.query("plan", options.plan_id.as_ref());
        let call = call.query("message", options.message.as_ref());
        let call = call.header("x-core-deploy-branch", options.branch.as_deref());
        let call = call.header("idempotency-key", options.idempotency_key.as_deref());
        call.send(archive).await
    }

    /// Lists deployments, newest first.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn list_deployments(
        &self,
        platform: &str,
        filter: &DeploymentFilter,
    ) -> Result<Page<Deployment>> {
        let call = self.call(LIST_DEPLOYMENTS, &[platform]);
        let call = call.query("branch", filter.branch.as_ref());
        let call = call.query("status", filter.status.as_ref());
        let call = call.query("limit", filter.page.limit);
        call.query("cursor", filter.page.cursor.as_ref())
            .send()
            .await
            .map(Into::into)
    }

    /// Returns the status of a deployment.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 404 if there is no such deployment.
    pub async fn get_deployment(
        &self,
        platform: &str,
        deployment: &str,
    ) -> Result<DeploymentState> {
        self.call(GET_DEPLOYMENT, &[platform, deployment])
            .send()
            .await
    }

    /// Waits until a deployment has ended, and returns its status.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request. A failed deployment is no error.
    pub async fn wait_for_deployment(
        &self,
        platform: &str,
        deployment: &str,
    ) -> Result<DeploymentState> {
        let mut pause = WaitPause::new();
        loop {
            pause.start().await;
            let call = self.call(GET_DEPLOYMENT, &[platform, deployment]);
            let deployment: DeploymentState = call.query("wait", Some(WAIT_SECONDS)).send().await?;
            if deployment.status.is_final() {
                return Ok(deployment);
            }
        }
    }

    /// Follows the events of a deployment, oldest first, until it has ended.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn follow_deployment(
        &self,
        platform: &str,
        deployment: &str,
    ) -> Result<EventStream<DeploymentProgress>> {
        let call = self.call(FOLLOW_DEPLOYMENT, &[platform, deployment]);
        call.open(StreamEnd::After(has_ended)).await
    }

    /// Deploys the content of an earlier deployment again, on the same branch.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 409 if another deployment is in progress, production is pinned,
    /// or the deployment was never active.
    pub async fn roll_back_deployment(
        &self,
        platform: &str,
        deployment: &str,
    ) -> Result<QueuedDeployment> {
        self.call(ROLL_BACK_DEPLOYMENT, &[platform, deployment])
            .send()
            .await
    }

    /// Deploys the content of a preview to production.
    ///
    /// # Errors
    /// Those of [`Client::roll_back_deployment`].
    pub async fn promote_deployment(
        &self,
        platform: &str,
        deployment: &str,
    ) -> Result<QueuedDeployment> {
        self.call(PROMOTE_DEPLOYMENT, &[platform, deployment])
            .send()
            .await
    }

    /// Pins production to its live deployment: later deployments to production are refused until it is unpinned.
    ///
    /// # Errors
    /// [`Error::Api`](crate::Error::Api) with the status 409 if the deployment is not the live one.
    pub async fn pin_deployment(&self, platform: &str, deployment: &str) -> Result<Deployment> {
        self.call(PIN_DEPLOYMENT, &[platform, deployment])
            .send()
            .await
    }

    /// Ends the pin of a deployment.
    ///
    /// # Errors
    /// [`Error`](crate::Error) of the request.
    pub async fn unpin_deployment(&self, platform: &str, deployment: &str) -> Result<Deployment> {
        self.call(UNPIN_DEPLOYMENT, &[platform, deployment])
            .send()
            .await
    }
}

fn has_ended(progress: &DeploymentProgress) -> bool {
    progress.deployment.status.is_final()
}
