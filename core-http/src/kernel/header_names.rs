//! Header names that gateway and services agree on. Those that begin with `x-core-` are ours alone: a gateway drops them
//! from what a client sends, but for [`DEPLOY_BRANCH`].

/// The user a holder of the service key calls for.
pub(crate) const USER_ID: &str = "x-core-user-id";

/// That user's role.
pub(crate) const ROLE: &str = "x-core-role";

/// The platform that user acts for.
pub(crate) const PLATFORM_ID: &str = "x-core-platform-id";

/// The organization that user acts for.
pub(crate) const ORGANIZATION_ID: &str = "x-core-organization-id";

/// `true` when that organization operates the installation.
pub(crate) const OPERATOR: &str = "x-core-operator";

/// The client's address as the gateway knows it.
pub(crate) const CLIENT_IP: &str = "x-core-client-ip";

/// The service key of a gateway, in a request that carries the client's own credential or none.
pub(crate) const SERVICE_KEY: &str = "x-core-service-key";

/// The request id as the gateway tells it to a service.
pub(crate) const CORE_REQUEST_ID: &str = "x-core-request-id";

/// The trace id, for services and clients.
pub(crate) const TRACE_ID: &str = "x-core-trace-id";

/// The branch a client deploys to.
pub(crate) const DEPLOY_BRANCH: &str = "x-core-deploy-branch";

/// The request id, as clients send and get it.
pub(crate) const REQUEST_ID: &str = "x-request-id";

/// A programmatic API key.
pub(crate) const API_KEY: &str = "x-api-key";

/// What a gateway took off the front of the path.
pub(crate) const FORWARDED_PREFIX: &str = "x-forwarded-prefix";

/// Set on the stored answer to a request that came before.
pub(crate) const REPLAYED: &str = "idempotency-replayed";
