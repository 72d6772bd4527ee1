//! The header names of gateway and services. Names that start with `x-core-` are internal: a gateway removes them from
//! the requests of clients, except [`DEPLOY_BRANCH`].

use http::HeaderName;

/// The id of the user for whom a holder of the service key calls.
pub(crate) static USER_ID: HeaderName = HeaderName::from_static("x-core-user-id");

/// The role of that user. Informational: services read it from the store.
pub(crate) static ROLE: HeaderName = HeaderName::from_static("x-core-role");

/// The permissions of that user, as comma-separated patterns. Informational: services read them from the store.
pub(crate) static PERMISSIONS: HeaderName = HeaderName::from_static("x-core-permissions");

/// The id of the platform for which that user acts.
pub(crate) static PLATFORM_ID: HeaderName = HeaderName::from_static("x-core-platform-id");

/// The id of the organization for which that user acts.
pub(crate) static ORGANIZATION_ID: HeaderName = HeaderName::from_static("x-core-organization-id");

/// `true` if that organization operates the installation. Informational: services read it from the store.
pub(crate) static OPERATOR: HeaderName = HeaderName::from_static("x-core-operator");

/// The id of the API key that the client presented. [`USER_ID`] is then its owner; it is absent for keys of an
/// organization.
pub(crate) static API_KEY_ID: HeaderName = HeaderName::from_static("x-core-api-key-id");

/// The client's IP address, as determined by the gateway.
pub(crate) static CLIENT_IP: HeaderName = HeaderName::from_static("x-core-client-ip");

/// The service key or service token of a gateway, in requests whose `Authorization` is the client's own or absent.
pub(crate) static SERVICE_KEY: HeaderName = HeaderName::from_static("x-core-service-key");

/// What a request has changed, in responses of a service to a gateway in another process. The gateway removes it.
pub(crate) static NOTICES: HeaderName = HeaderName::from_static("x-core-notices");

/// The request id that the gateway sends to a service.
pub(crate) static CORE_REQUEST_ID: HeaderName = HeaderName::from_static("x-core-request-id");

/// The trace id, in requests to services and responses to clients.
pub(crate) static TRACE_ID: HeaderName = HeaderName::from_static("x-core-trace-id");

/// The W3C trace context header that identifies the trace.
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The branch to which a client deploys.
pub(crate) static DEPLOY_BRANCH: HeaderName = HeaderName::from_static("x-core-deploy-branch");

/// The request id, in requests of clients and responses to them.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The API key of a program.
pub(crate) static API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The prefix that a gateway has removed from the path.
pub(crate) static FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// `true` on a response that was stored for an earlier request with the same idempotency key.
pub(crate) static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The scheme of the request to a trusted proxy.
pub(crate) static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The host of the request to a trusted proxy.
pub(crate) static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The addresses of the client and of the proxies before the sender. Each proxy appends one.
pub(crate) static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
