//! Header names that gateway and services agree on. Those that begin with `x-core-` are ours alone: a gateway drops them
//! from what a client sends, but for [`DEPLOY_BRANCH`].

use http::HeaderName;

/// The user a holder of the service key calls for.
pub(crate) static USER_ID: HeaderName = HeaderName::from_static("x-core-user-id");

/// That user's role. Informational: a service reads it from the store.
pub(crate) static ROLE: HeaderName = HeaderName::from_static("x-core-role");

/// That user's permissions, as patterns joined with commas. Informational: a service reads them from the store.
pub(crate) static PERMISSIONS: HeaderName = HeaderName::from_static("x-core-permissions");

/// The platform that user acts for.
pub(crate) static PLATFORM_ID: HeaderName = HeaderName::from_static("x-core-platform-id");

/// The organization that user acts for.
pub(crate) static ORGANIZATION_ID: HeaderName = HeaderName::from_static("x-core-organization-id");

/// `true` if that organization operates the installation. Informational: a service reads it from the store.
pub(crate) static OPERATOR: HeaderName = HeaderName::from_static("x-core-operator");

/// The API key with which a program calls; the user is its owner then, if it is not the organization's own.
pub(crate) static API_KEY_ID: HeaderName = HeaderName::from_static("x-core-api-key-id");

/// The client's address as the gateway knows it.
pub(crate) static CLIENT_IP: HeaderName = HeaderName::from_static("x-core-client-ip");

/// The service key of a gateway, in a request that carries the client's own credential or none.
pub(crate) static SERVICE_KEY: HeaderName = HeaderName::from_static("x-core-service-key");

/// The request id as the gateway tells it to a service.
pub(crate) static CORE_REQUEST_ID: HeaderName = HeaderName::from_static("x-core-request-id");

/// The trace id, for services and clients.
pub(crate) static TRACE_ID: HeaderName = HeaderName::from_static("x-core-trace-id");

/// The branch a client deploys to.
pub(crate) static DEPLOY_BRANCH: HeaderName = HeaderName::from_static("x-core-deploy-branch");

/// The request id, as clients send and get it.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A programmatic API key.
pub(crate) static API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What a gateway took off the front of the path.
pub(crate) static FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Set on the stored answer to a request that came before.
pub(crate) static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The scheme a trusted proxy was asked with.
pub(crate) static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The host a trusted proxy was asked for.
pub(crate) static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The addresses a request came from, as trusted proxies know them.
pub(crate) static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
