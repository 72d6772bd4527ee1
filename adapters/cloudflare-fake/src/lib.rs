//! A stateful fake of the part of Cloudflare's API v4 that the suite uses, for tests of API clients.
//!
//! It listens on the loopback interface, keeps one account in memory and responds like the API, including envelopes,
//! error codes, pagination, name conflicts and missing references. Faults are scripted for matching requests, or random
//! with a seed. Its clock and its ids are deterministic.
//!
//! # Operations
//! The fake supports the operations that the adapter and its tests call, and those that Cloudflare's own client calls in
//! `tests/wrangler.sh`. It refuses all other requests. The account, zone and upload token of a request must exist.
//! Static assets of Workers are not supported.
//!
//! ```text
//! GET /user
//! GET /user/tokens/verify
//! GET /accounts
//!
//! GET /zones
//! GET /zones/{zone_id}/dns_records
//! POST /zones/{zone_id}/dns_records
//! PATCH /zones/{zone_id}/dns_records/{dns_record_id}
//! DELETE /zones/{zone_id}/dns_records/{dns_record_id}
//! GET /zones/{zone_id}/workers/routes
//! POST /zones/{zone_id}/workers/routes
//! PUT /zones/{zone_id}/workers/routes/{route_id}
//! DELETE /zones/{zone_id}/workers/routes/{route_id}
//! GET /zones/{zone_id}/custom_hostnames
//! POST /zones/{zone_id}/custom_hostnames
//! GET /zones/{zone_id}/custom_hostnames/{custom_hostname_id}
//! PATCH /zones/{zone_id}/custom_hostnames/{custom_hostname_id}
//! DELETE /zones/{zone_id}/custom_hostnames/{custom_hostname_id}
//!
//! GET /accounts/{account_id}/d1/database
//! POST /accounts/{account_id}/d1/database
//! DELETE /accounts/{account_id}/d1/database/{database_id}
//!
//! GET /accounts/{account_id}/r2/buckets
//! POST /accounts/{account_id}/r2/buckets
//! GET /accounts/{account_id}/r2/buckets/{bucket_name}
//! DELETE /accounts/{account_id}/r2/buckets/{bucket_name}
//! GET /accounts/{account_id}/r2/buckets/{bucket_name}/objects
//! PUT /accounts/{account_id}/r2/buckets/{bucket_name}/objects/{object_key}
//! DELETE /accounts/{account_id}/r2/buckets/{bucket_name}/objects/{object_key}
//!
//! GET /accounts/{account_id}/storage/kv/namespaces
//! POST /accounts/{account_id}/storage/kv/namespaces
//! DELETE /accounts/{account_id}/storage/kv/namespaces/{namespace_id}
//! GET /accounts/{account_id}/storage/kv/namespaces/{namespace_id}/values/{key_name}
//! PUT /accounts/{account_id}/storage/kv/namespaces/{namespace_id}/values/{key_name}
//!
//! GET /accounts/{account_id}/queues
//! POST /accounts/{account_id}/queues
//! DELETE /accounts/{account_id}/queues/{queue_id}
//! GET /accounts/{account_id}/queues/{queue_id}/consumers
//! POST /accounts/{account_id}/queues/{queue_id}/consumers
//! PUT /accounts/{account_id}/queues/{queue_id}/consumers/{consumer_id}
//! DELETE /accounts/{account_id}/queues/{queue_id}/consumers/{consumer_id}
//!
//! GET /accounts/{account_id}/workers/subdomain
//! GET /accounts/{account_id}/workers/domains
//! PUT /accounts/{account_id}/workers/domains
//! DELETE /accounts/{account_id}/workers/domains/{domain_id}
//! GET /accounts/{account_id}/workers/services/{script_name}
//! DELETE /accounts/{account_id}/workers/services/{script_name}
//! GET /accounts/{account_id}/workers/scripts
//! PUT /accounts/{account_id}/workers/scripts/{script_name}
//! DELETE /accounts/{account_id}/workers/scripts/{script_name}
//! GET /accounts/{account_id}/workers/scripts/{script_name}/settings
//! PATCH /accounts/{account_id}/workers/scripts/{script_name}/settings
//! PATCH /accounts/{account_id}/workers/scripts/{script_name}/script-settings
//! GET /accounts/{account_id}/workers/scripts/{script_name}/subdomain
//! POST /accounts/{account_id}/workers/scripts/{script_name}/subdomain
//! GET /accounts/{account_id}/workers/scripts/{script_name}/secrets
//! PUT /accounts/{account_id}/workers/scripts/{script_name}/secrets
//! PATCH /accounts/{account_id}/workers/scripts/{script_name}/secrets-bulk
//! GET /accounts/{account_id}/workers/scripts/{script_name}/versions
//! POST /accounts/{account_id}/workers/scripts/{script_name}/versions
//! GET /accounts/{account_id}/workers/scripts/{script_name}/versions/{version_id}
//! GET /accounts/{account_id}/workers/scripts/{script_name}/deployments
//! POST /accounts/{account_id}/workers/scripts/{script_name}/deployments
//! GET /accounts/{account_id}/workers/scripts/{script_name}/tails
//! POST /accounts/{account_id}/workers/scripts/{script_name}/tails
//! DELETE /accounts/{account_id}/workers/scripts/{script_name}/tails/{tail_id}
//!
//! GET /accounts/{account_id}/pages/projects
//! POST /accounts/{account_id}/pages/projects
//! GET /accounts/{account_id}/pages/projects/{project_name}
//! PATCH /accounts/{account_id}/pages/projects/{project_name}
//! DELETE /accounts/{account_id}/pages/projects/{project_name}
//! GET /accounts/{account_id}/pages/projects/{project_name}/upload-token
//! GET /accounts/{account_id}/pages/projects/{project_name}/deployments
//! POST /accounts/{account_id}/pages/projects/{project_name}/deployments
//! GET /accounts/{account_id}/pages/projects/{project_name}/deployments/{deployment_id}
//! GET /accounts/{account_id}/pages/projects/{project_name}/deployments/{deployment_id}/history/logs
//! POST /accounts/{account_id}/pages/projects/{project_name}/deployments/{deployment_id}/tails
//! DELETE /accounts/{account_id}/pages/projects/{project_name}/deployments/{deployment_id}/tails/{tail_id}
//! GET /accounts/{account_id}/pages/projects/{project_name}/domains
//! POST /accounts/{account_id}/pages/projects/{project_name}/domains
//! GET /accounts/{account_id}/pages/projects/{project_name}/domains/{domain_name}
//! PATCH /accounts/{account_id}/pages/projects/{project_name}/domains/{domain_name}
//! DELETE /accounts/{account_id}/pages/projects/{project_name}/domains/{domain_name}
//! POST /pages/assets/check-missing
//! POST /pages/assets/upload
//! POST /pages/assets/upsert-hashes
//! ```

mod access;
mod clock;
#[cfg(feature = "contract")]
pub mod contract;
mod d1;
mod envelope;
mod fault;
mod handle;
mod journal;
mod jwt;
mod kv;
mod limit;
mod multipart;
mod page;
mod pages;
mod queue;
mod r2;
mod request;
mod router;
mod script;
mod server;
mod serving;
mod settings;
mod state;
mod tail;
mod user;
mod zone;

pub use fault::{Fault, Matcher, Pace, Silence};
pub use handle::FakeCloudflare;
pub use journal::{Exchange, RecordedRequest};
pub use limit::RateLimit;
pub use serving::HostnameTarget;
pub use settings::Settings;
pub use state::Kind;
pub use state::project::DeploymentEnd;
pub use state::script::ScriptInfo;
