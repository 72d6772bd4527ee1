//! The table of all operations that the client calls. The client builds every request from it, and a test compares it
//! with the OpenAPI documents of the server.

use crate::operation::{
    ArchiveBody, EventsReply, FormBody, JsonBody, JsonReply, NoBody, Operation, Service, operations,
};
use crate::types::account::{
    AuthorizationServer, DeviceCodeRequest, DeviceCodes, DeviceTokenRequest, RefreshRequest,
    Success, TokenPair, Whoami,
};
use crate::types::custom_domain::{AddCustomDomain, CustomDomain};
use crate::types::deployment::{
    Deployment, DeploymentPlan, DeploymentProgress, DeploymentState, PlanDeployment,
    QueuedDeployment,
};
use crate::types::dns_record::{CreateDnsRecord, DnsRecord};
use crate::types::entity::Entity;
use crate::types::feature::{
    ActivateFeature, DeactivateFeature, Feature, FeatureActivation, FeatureDeactivation,
};
use crate::types::job::{Job, JobEvent, JobOrPlan, JobProgressEvent, JobRef};
use crate::types::log::LogLine;
use crate::types::page::{CompleteList, CursorList, TotalList};
use crate::types::platform::Platform;
use crate::types::resource::Resource;
use crate::types::secret_name::{SecretOutcome, SecretRecord, SetSecrets};
use crate::types::stack::{
    ActivateStack, CreateWorkspaceStack, CreatedStack, StackTemplateDetail, WorkspaceStack,
};

operations! {
    /// Returns the metadata of the authorization server.
    GET_AUTHORIZATION_SERVER "get_authorization_server":
        GET Iam "/.well-known/oauth-authorization-server" (NoBody) -> JsonReply<AuthorizationServer>;
    /// Starts a device login.
    REQUEST_DEVICE_CODE "request_device_code":
        POST Iam "/oauth/device/code" (FormBody<DeviceCodeRequest>) -> JsonReply<DeviceCodes>;
    /// Exchanges a device code for tokens.
    EXCHANGE_DEVICE_CODE "exchange_device_code":
        POST Iam "/oauth/device/token" (FormBody<DeviceTokenRequest>) -> JsonReply<TokenPair>;
    /// Exchanges a refresh token for tokens.
    REFRESH_TOKENS "refresh_tokens":
        POST Iam "/oauth/token" (FormBody<RefreshRequest>) -> JsonReply<TokenPair>;
    /// Ends the session of the credential.
    SIGN_OUT "sign_out":
        POST Iam "/api/auth/sign-out" (NoBody) -> JsonReply<Success>;
    /// Returns the person of the credential.
    WHOAMI "whoami":
        POST Iam "/api/v1/cli/whoami" (NoBody) -> JsonReply<Whoami>;

    /// Lists the platforms of the caller.
    LIST_PLATFORMS "list_platforms":
        GET Registry "/api/v1/platforms" query["limit", "cursor"] (NoBody) -> JsonReply<TotalList<Platform>>;
    /// Returns a platform.
    GET_PLATFORM "get_platform":
        GET Registry "/api/v1/platforms/{platformId}" (NoBody) -> JsonReply<Platform>;
    /// Lists the entities of a platform.
    LIST_ENTITIES "list_entities":
        GET Registry "/api/v1/platforms/{platformId}/entities" query["limit", "cursor", "type"]
            (NoBody) -> JsonReply<TotalList<Entity>>;
    /// Lists the resources of a platform.
    LIST_RESOURCES "list_resources":
        GET Registry "/api/v1/platforms/{platformId}/resources" query["limit", "cursor"]
            (NoBody) -> JsonReply<TotalList<Resource>>;

    /// Deploys an archive of a site.
    DEPLOY "deploy":
        POST Cli "/api/v1/platforms/{platformId}/deploy" query["plan", "message"]
            headers["x-core-deploy-branch", "idempotency-key"] (ArchiveBody) -> JsonReply<QueuedDeployment>;
    /// Plans a deployment.
    PLAN_DEPLOYMENT "plan_deployment":
        POST Cli "/api/v1/platforms/{platformId}/deploy/plan"
            (JsonBody<PlanDeployment>) -> JsonReply<DeploymentPlan>;
    /// Lists the deployments of a platform.
    LIST_DEPLOYMENTS "list_deployments":
        GET Cli "/api/v1/platforms/{platformId}/deployments" query["branch", "status", "limit", "cursor"]
            (NoBody) -> JsonReply<CursorList<Deployment>>;
    /// Returns a deployment.
    GET_DEPLOYMENT "get_deployment":
        GET Cli "/api/v1/platforms/{platformId}/deployments/{deploymentId}" query["wait"]
            (NoBody) -> JsonReply<DeploymentState>;
    /// Deploys the content of an earlier deployment again.
    ROLL_BACK_DEPLOYMENT "roll_back_deployment":
        POST Cli "/api/v1/platforms/{platformId}/deployments/{deploymentId}/rollback"
            headers["idempotency-key"] (NoBody) -> JsonReply<QueuedDeployment>;
    /// Deploys the content of a preview to production.
    PROMOTE_DEPLOYMENT "promote_deployment":
        POST Cli "/api/v1/platforms/{platformId}/deployments/{deploymentId}/promote"
            headers["idempotency-key"] (NoBody) -> JsonReply<QueuedDeployment>;
    /// Pins production to a deployment.
    PIN_DEPLOYMENT "pin_deployment":
        POST Cli "/api/v1/platforms/{platformId}/deployments/{deploymentId}/pin"
            headers["idempotency-key"] (NoBody) -> JsonReply<Deployment>;
    /// Ends the pin of a deployment.
    UNPIN_DEPLOYMENT "unpin_deployment":
        DELETE Cli "/api/v1/platforms/{platformId}/deployments/{deploymentId}/pin"
            (NoBody) -> JsonReply<Deployment>;
    /// Follows the events of a deployment.
    FOLLOW_DEPLOYMENT "follow_deployment":
        GET Cli "/api/v1/platforms/{platformId}/deployments/{deploymentId}/events"
            headers["last-event-id"] (NoBody) -> EventsReply<DeploymentProgress>;

    /// Lists the features of a platform.
    LIST_FEATURES "list_features":
        GET Cli "/api/v1/platforms/{platformId}/features" (NoBody) -> JsonReply<CompleteList<Feature>>;
    /// Activates a feature.
    ACTIVATE_FEATURE "activate_feature":
        POST Cli "/api/v1/platforms/{platformId}/features/activate"
            headers["idempotency-key"] (JsonBody<ActivateFeature>) -> JsonReply<FeatureActivation>;
    /// Deactivates a feature.
    DEACTIVATE_FEATURE "deactivate_feature":
        POST Cli "/api/v1/platforms/{platformId}/features/deactivate"
            headers["idempotency-key"] (JsonBody<DeactivateFeature>) -> JsonReply<FeatureDeactivation>;

    /// Lists the names of secrets.
    LIST_SECRETS "list_secrets":
        GET Cli "/api/v1/platforms/{platformId}/secrets" query["resourceId"]
            (NoBody) -> JsonReply<CompleteList<SecretRecord>>;
    /// Sets secrets of a platform.
    SET_SECRETS "set_secrets":
        POST Cli "/api/v1/platforms/{platformId}/secrets"
            (JsonBody<SetSecrets>) -> JsonReply<SecretOutcome>;
    /// Deletes a secret.
    DELETE_SECRET "delete_secret":
        DELETE Cli "/api/v1/platforms/{platformId}/secrets/{secretName}" query["resourceId"]
            (NoBody) -> JsonReply<Success>;

    /// Follows the log lines of a platform.
    FOLLOW_LOGS "follow_logs":
        GET Cli "/api/v1/platforms/{platformId}/logs" query["resource", "follow", "tail"]
            headers["last-event-id"] (NoBody) -> EventsReply<LogLine>;

    /// Lists custom domains.
    LIST_DOMAINS "list_domains":
        GET Registry "/api/v1/platforms/{platformId}/domains" query["limit", "cursor"]
            (NoBody) -> JsonReply<CursorList<CustomDomain>>;
    /// Adds a custom domain.
    ADD_DOMAIN "add_domain":
        POST Provisioning "/api/v1/provision/domain/add"
            headers["idempotency-key"] (JsonBody<AddCustomDomain>) -> JsonReply<JobOrPlan>;
    /// Lists workspace stacks.
    LIST_WORKSPACE_STACKS "list_workspace_stacks":
        GET Registry "/api/v1/platforms/{platformId}/stacks" query["limit", "cursor"]
            (NoBody) -> JsonReply<CursorList<WorkspaceStack>>;
    /// Creates a workspace stack.
    CREATE_WORKSPACE_STACK "create_workspace_stack":
        POST Registry "/api/v1/platforms/{platformId}/stacks"
            headers["idempotency-key"] (JsonBody<CreateWorkspaceStack>) -> JsonReply<CreatedStack>;
    /// Lists the DNS records of a workspace stack.
    LIST_DNS_RECORDS "list_dns_records":
        GET Registry "/api/v1/platforms/{platformId}/stacks/{stackId}/dns" query["limit", "cursor"]
            (NoBody) -> JsonReply<CursorList<DnsRecord>>;
    /// Creates a DNS record.
    CREATE_DNS_RECORD "create_dns_record":
        POST Registry "/api/v1/platforms/{platformId}/stacks/{stackId}/dns"
            headers["idempotency-key"] (JsonBody<CreateDnsRecord>) -> JsonReply<DnsRecord>;

    /// Lists the jobs of a platform.
    LIST_JOBS "list_jobs":
        GET Provisioning "/api/v1/provision/jobs" query["platformId", "status", "limit", "cursor"]
            (NoBody) -> JsonReply<TotalList<Job>>;
    /// Returns a job.
    GET_JOB "get_job":
        GET Provisioning "/api/v1/provision/jobs/{jobId}" query["wait"] (NoBody) -> JsonReply<Job>;
    /// Lists the events of a job.
    LIST_JOB_EVENTS "list_job_events":
        GET Provisioning "/api/v1/provision/jobs/{jobId}/events" query["limit", "cursor"]
            (NoBody) -> JsonReply<CursorList<JobEvent>>;
    /// Follows the events of a job.
    FOLLOW_JOB "follow_job":
        GET Provisioning "/api/v1/provision/jobs/{jobId}/events"
            headers["last-event-id"] (NoBody) -> EventsReply<JobProgressEvent>;
    /// Retries a job.
    RETRY_JOB "retry_job":
        POST Provisioning "/api/v1/provision/jobs/{jobId}/retry"
            headers["idempotency-key"] (NoBody) -> JsonReply<JobRef>;

    /// Activates a stack.
    ACTIVATE_STACK "activate_stack":
        POST Provisioning "/api/v1/provision/stack/activate" query["dryRun"]
            headers["idempotency-key"] (JsonBody<ActivateStack>) -> JsonReply<JobOrPlan>;
    /// Returns a stack template.
    GET_STACK_TEMPLATE "get_stack_template":
        GET Stacks "/api/v1/stacks/{name}" (NoBody) -> JsonReply<StackTemplateDetail>;
}
