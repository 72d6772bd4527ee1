//! Endpoints for the deployments of a platform: list, status, progress, rollback, promotion and pin.

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Code, DeploymentId, Effect, JobId, ListQuery, PlatformId, Result, Stored, UnixSeconds,
    permission,
};
use core_domain::port::{Mode, Store, UnitOfWork};
use core_domain::provisioning::JobEvent;
use core_domain::registry::{Branch, Deployment, DeploymentMessage, DeploymentStatus};
use core_domain::use_case::cli::{self, DeploymentEvent, DeploymentFeed};
use core_domain::use_case::registry::deployment::{self, DeploymentListFilter, ListedDeployment};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::deploy::deploy_response;
use crate::kernel::{
    Cx, Endpoint, Event, EventBatch, EventStream, Feed, FeedState, FeedSubscription, Input,
    LAST_EVENT_ID, ListP4, Output, Versioned, WaitQuery, WaitTarget, call_with_id, delete, get,
    post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/deployments";
const ONE: &str = "/api/v1/platforms/{platformId}/deployments/{deploymentId}";
const EVENTS: &str = "/api/v1/platforms/{platformId}/deployments/{deploymentId}/events";
const ROLL_BACK: &str = "/api/v1/platforms/{platformId}/deployments/{deploymentId}/rollback";
const PROMOTE: &str = "/api/v1/platforms/{platformId}/deployments/{deploymentId}/promote";
const PIN: &str = "/api/v1/platforms/{platformId}/deployments/{deploymentId}/pin";

/// The refusals of a rollback and a promotion.
const REDEPLOY_REFUSALS: &[Code] = &[Code::Conflict, Code::InvalidState, Code::LimitReached];

pub(super) fn rows() -> Vec<Endpoint> {
    let position = json!({
        "type": "string",
        "description": "The id of the last received event.",
    });
    vec![
        get(ALL, "listDeployments")
            .summary("Lists the deployments of a platform, newest first.")
            .description(
                "Each deployment has its branch, its status, and whether visitors see it now. \
                 Rollbacks and promotions are deployments of their own.",
            )
            .reads(list),
        get(ONE, "getDeployment")
            .summary("Returns the status of a deployment.")
            .description(
                "With `wait`, the response is delayed until the deployment has ended, for at most \
                 the given number of seconds. The response then has the status at that time.",
            )
            .waits(show, wait_target),
        get(EVENTS, "followDeployment")
            .summary("Follows the progress of a deployment.")
            .description(
                "The response is a stream of server-sent events, oldest first: each step of the \
                 deployment's job, with the deployment at that time. It begins after the event in \
                 `Last-Event-ID`, by default at the first event, and ends when the deployment has \
                 ended.",
            )
            .header("Last-Event-ID", position)
            .plain_with_scope(follow),
        post(ROLL_BACK, "rollBackDeployment")
            .summary("Makes an earlier deployment live again.")
            .description(
                "Queues a new deployment with the content of the earlier one on the same branch, \
                 without an upload, and returns 202. If that content is live already, nothing is \
                 queued, and the response has status 200. A deployment whose content was removed \
                 by the provider's clean-up fails.",
            )
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .if_match()
            .refuses(REDEPLOY_REFUSALS)
            .writes(call_with_id(cli::roll_back).map(deploy_response)),
        post(PROMOTE, "promoteDeployment")
            .summary("Makes a preview live on production.")
            .description(
                "Queues a new deployment of `production` with the content of the preview, without \
                 an upload, and returns 202. If that content is live already, nothing is queued, \
                 and the response has status 200.",
            )
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .if_match()
            .refuses(REDEPLOY_REFUSALS)
            .writes(call_with_id(cli::promote).map(deploy_response)),
        post(PIN, "pinDeployment")
            .summary("Pins the live deployment of production.")
            .description(
                "While a deployment is pinned, uploads to `production`, rollbacks and promotions \
                 are refused with `CONFLICT`, and `details.pinnedDeploymentId` names it. Previews \
                 are not affected.",
            )
            .if_match()
            .refuses(&[Code::Conflict, Code::InvalidState])
            .writes(call_with_id(deployment::pin).map(listed_response)),
        delete(PIN, "unpinDeployment")
            .summary("Unpins a deployment.")
            .description("Does nothing if the deployment is not pinned.")
            .writes(call_with_id(deployment::unpin).map(listed_response)),
    ]
}

/// A deployment in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedDeploymentView {
    /// The status of the deployment.
    #[serde(flatten)]
    status: DeploymentView,
    /// The branch that the site is deployed to. `production` is the live site; other branches are previews.
    branch: Branch,
    /// The name of the pages project that the site is deployed to.
    project_name: String,
    /// The URL at which only this deployment is served, also after later ones; `null` if it is unknown or the provider
    /// has no such URLs.
    permalink: Option<String>,
    /// The description that the caller gave; `null` without one.
    message: Option<DeploymentMessage>,
    /// Number of files of the site; `null` if it is unknown.
    file_count: Option<i64>,
    /// Total size of the files in bytes; `null` if it is unknown.
    total_bytes: Option<i64>,
    /// The caller that deployed: the id of a user or the name of a service.
    user_id: String,
    /// The deployment whose content a rollback or promotion has; `null` for an upload.
    source_deployment_id: Option<DeploymentId>,
    /// Whether the deployment is the newest active one of its branch, which visitors see.
    is_live: bool,
    /// Whether the deployment is pinned.
    is_pinned: bool,
    /// The time of the request, in Unix seconds.
    created_at: UnixSeconds,
}

impl From<ListedDeployment> for ListedDeploymentView {
    fn from(listed: ListedDeployment) -> Self {
        let deployment = listed.deployment.into_inner();
        Self {
            branch: deployment.branch.clone(),
            project_name: deployment.project_name.clone(),
            permalink: deployment.permalink.clone(),
            message: deployment.message.clone(),
            file_count: deployment.file_count,
            total_bytes: deployment.total_bytes,
            user_id: deployment.user_id.clone(),
            source_deployment_id: deployment.source_id.clone(),
            is_live: listed.is_live,
            is_pinned: deployment.is_pinned(),
            created_at: UnixSeconds(deployment.created_at),
            status: deployment.into(),
        }
    }
}

async fn list(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), ListQuery<DeploymentListFilter>>,
) -> Result<Output<ListP4<ListedDeploymentView>>> {
    let page = deployment::page(&scope, uow, &input.query).await?;
    Ok(Output::new(page.map(ListedDeploymentView::from).into()))
}

fn listed_response(listed: ListedDeployment) -> Output<ListedDeploymentView> {
    Output::new(listed.into())
}

type Reads = PlatformScope<permission::DeploymentRead>;

/// A step of the progress of a deployment.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeploymentEventView {
    /// The id of the server-sent event.
    #[serde(skip)]
    id: i64,
    /// The deployment when this event was sent, not when it happened.
    deployment: DeploymentView,
    /// The event of the deployment's job; `null` if another program performs the deployment.
    event: Option<JobEvent>,
}

async fn follow(
    cx: &Cx,
    scope: Reads,
    input: Input<(PlatformId, DeploymentId)>,
) -> Result<EventStream<DeploymentEventView>> {
    let mut uow = cx.app.store.begin(Mode::Auto).await?;
    let seen = deployment::get(&scope, uow.as_mut(), &input.path.1).await?;
    drop(uow);
    // Changes of deployments without a job are not announced, so the stream polls them.
    let news = seen.job_id.as_ref().map(|job| cx.app.jobs.subscribe(job));
    let listening = FeedSubscription::of(cx, news)?;
    let last = cx.header(LAST_EVENT_ID);
    let feed = cli::open_deployment_feed(cx, &scope, &input.path.1, last)?;
    Ok(listening.follow(ProgressFeed(feed)))
}

/// The feed of a deployment, with its events as clients see them.
struct ProgressFeed(DeploymentFeed);

impl Feed for ProgressFeed {
    type Event = DeploymentEventView;

    async fn next(&mut self, store: &dyn Store) -> Result<EventBatch<DeploymentEventView>> {
        let page = self.0.next(store).await?;
        let then = match (page.has_more, page.has_ended) {
            (true, _) => FeedState::More,
            (false, false) => FeedState::Later,
            (false, true) => FeedState::End,
        };
        let events = page.events.into_iter();
        let events = events.map(DeploymentEventView::from).collect();
        Ok(EventBatch { events, then })
    }

    async fn authorize_again(&self, store: &dyn Store) -> Result<()> {
        self.0.authorize_again(store).await
    }

    fn is_concerned_by(&self, effect: &Effect) -> bool {
        self.0.must_reauthorize_after(effect)
    }

    fn to_event(view: &DeploymentEventView) -> Result<Event> {
        let name = view.event.as_ref().map(|event| event.event_type.clone());
        let name = name.unwrap_or_else(|| "deployment.updated".to_owned());
        Ok(Event::json(view)?.id(view.id.to_string()).name(name))
    }
}

impl From<DeploymentEvent> for DeploymentEventView {
    fn from(event: DeploymentEvent) -> Self {
        Self {
            id: event.id,
            deployment: event.deployment.into_inner().into(),
            event: event.job_event,
        }
    }
}

/// The status of a deployment, as the CLI service returns it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeploymentView {
    /// The id of the deployment.
    deployment_id: DeploymentId,
    /// The status of the deployment.
    status: DeploymentStatus,
    /// The id of the deployment at the provider; `null` before the upload to it.
    cf_deployment_id: Option<String>,
    /// The URL of the deployed site; `null` before it is served.
    url: Option<String>,
    /// The reason for the failure or cancellation; `null` if there is none.
    error_message: Option<String>,
    /// The time at which the work began, in Unix seconds; `null` before.
    started_at: Option<UnixSeconds>,
    /// The time at which the deployment ended, in Unix seconds; `null` before.
    completed_at: Option<UnixSeconds>,
    /// The job that performs the deployment; not part of the response.
    #[serde(skip)]
    job_id: Option<JobId>,
}

impl From<Deployment> for DeploymentView {
    fn from(deployment: Deployment) -> Self {
        Self {
            deployment_id: deployment.id,
            status: deployment.status,
            cf_deployment_id: deployment.cf_deployment_id,
            url: deployment.url,
            error_message: deployment.error_message,
            started_at: deployment.started_at.map(UnixSeconds),
            completed_at: deployment.completed_at.map(UnixSeconds),
            job_id: deployment.job_id,
        }
    }
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, DeploymentId), WaitQuery>,
) -> Result<Versioned<DeploymentView>> {
    let found: Stored<Deployment> = deployment::get(&scope, uow, &input.path.1).await?;
    Ok(Versioned::of(&found, found.edit().into()))
}

fn wait_target(answer: &Versioned<DeploymentView>) -> WaitTarget {
    let deployment = answer.body();
    match &deployment.job_id {
        _ if deployment.status.is_terminal() => WaitTarget::Nothing,
        Some(job) => WaitTarget::JobEvent(job.clone()),
        None => WaitTarget::Change,
    }
}
