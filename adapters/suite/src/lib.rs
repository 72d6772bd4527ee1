//! The whole Platform Control API Suite in one dependency: every service as a tower service over the store you choose.
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), core_suite::SuiteError> {
//! use core_suite::Suite;
//! use tower::ServiceExt;
//!
//! let suite = Suite::builder().in_memory().build().await?;
//! let request = http::Request::get("/health").body(String::new()).unwrap_or_default();
//! let Ok(answer) = suite.gateway().oneshot(request).await;
//! assert_eq!(answer.status(), 200);
//! suite.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! The module [`guide`] explains step by step how to run, embed and operate the suite.
//!
//! # How to add an adapter
//! Implement the port (`core_domain::port`) and set it on the builder: [`SuiteBuilder::store`],
//! [`SuiteBuilder::infrastructure`], [`SuiteBuilder::blobs`], [`SuiteBuilder::archives`], [`SuiteBuilder::outlet`],
//! [`SuiteBuilder::mailer`], [`SuiteBuilder::password_hasher`], [`SuiteBuilder::passkeys`],
//! [`SuiteBuilder::dns_resolver`], [`SuiteBuilder::rate_limiter`], [`SuiteBuilder::notices`], [`SuiteBuilder::span_sink`], [`SuiteBuilder::clock`],
//! [`SuiteBuilder::entropy`]. The ports and services are
//! connected in `assemble.rs`.
//!
//! # Features
//! | feature | adds |
//! |---|---|
//! | none | the in-memory store and every service; about 125 crates, none of them with C code |
//! | `sqlite` | the store in a SQLite file |
//! | `postgres` | the store in a Postgres database |
//! | `sqlx` | the store in a Postgres database, on a pool of sqlx that the host program has |
//! | `local` | the provider that creates infrastructure on this machine, and the folder that stores uploads |
//! | `archives` | reading uploaded sites: tar, tar.gz and zip |
//! | `cloudflare` | the provider that creates infrastructure in a Cloudflare account |
//! | `stripe` | the payment provider that charges invoices in a Stripe account |
//! | `otel` | exporting traces to an OpenTelemetry collector, or to a pipeline of the host program |
//! | `redis` | sharing rate limits and notices between nodes through a Redis server |
//! | `s3` | storing uploads in a bucket of an S3-compatible object store, which nodes share |
//! | `docs` | the API reference at `/docs`, in the gateway and in every service; 2 MB of files |
//! | `dns` | looking up the DNS records of custom domains; without it domains are not verified |
//! | `webhooks` | sending webhooks over HTTP; without it webhooks cannot be delivered |
//! | `smtp` | sending mail through an SMTP server, with TLS; without it mails are written to files |
//! | `webauthn` | passkeys, if the host of IAM's URL is a domain name |
//!
//! Without `local`, set a store for uploads ([`SuiteBuilder::blobs`], or `s3`) and, without `cloudflare` too, a provider
//! ([`SuiteBuilder::infrastructure`]). Without `archives`, set an archive reader ([`SuiteBuilder::archives`]). The
//! calls of a missing part fail with an error that names the part and the feature.
#[cfg(any(
    test,
    not(all(
        feature = "local",
        feature = "archives",
        feature = "dns",
        feature = "webhooks"
    ))
))]
mod absent;
pub mod accounting;
mod after_commit;
#[cfg(feature = "archives")]
mod archives;
mod assemble;
pub mod audit_archives;
mod background_task;
mod background_threads;
#[cfg(feature = "sqlite")]
pub mod backup;
mod billing_options;
mod billing_ticker;
mod blobs;
mod builder;
mod cells;
mod client_address;
mod clock;
mod contradictions;
mod dns;
mod dns_options;
pub mod doctor;
mod due_queue;
mod entropy;
mod error;
pub mod guide;
mod history_options;
mod hostname_checker;
mod import;
mod infrastructure;
pub mod jobs;
mod late_rows;
mod mail_options;
mod mail_relay;
mod mailer;
mod metrics;
mod migration_settings;
pub mod migrations;
mod moves;
mod nodes;
mod open;
mod open_accounting;
mod open_plans;
mod outbox_folder;
mod outbox_options;
mod outbox_retention;
mod passkeys;
mod password;
mod payments;
pub mod plans;
mod provider;
mod relay;
mod remote_services;
mod scrypt_hash;
mod sealer;
mod secret;
mod settings;
#[cfg(feature = "local")]
mod site_options;
mod slice_size;
mod suite;
#[cfg(feature = "local")]
mod suspension_cache;
mod sweep_options;
mod sweeper;
mod trace_options;
mod traces;
pub mod units;
mod uploads;
mod usage;
mod webhook_dispatcher;
mod webhook_options;
mod webhook_sender;
mod worker;

#[cfg(feature = "archives")]
pub use archives::UnpackArchives;
pub use billing_options::BillingOptions;
pub use builder::SuiteBuilder;
pub use cells::{CellOptions, Cells};
pub use clock::SystemClock;
pub use contradictions::Contradiction;
#[cfg(feature = "cloudflare")]
pub use core_cloudflare::{API_BASE_URL as CLOUDFLARE_API, CloudflareAccount, CloudflareOptions};
#[cfg(feature = "dns")]
pub use core_dns::HickoryDns;
pub use core_domain::gateway::{
    Origins, RateClass, RateKind, RatePlan, RatePolicy, SpanId, TraceId, TracingId, TrustedProxies,
};
pub use core_domain::kernel::{Clock, Secret, SuiteService};
pub use core_domain::port::{AttributeValue, Span, SpanCounts, SpanKind, SpanSink};
pub use core_domain::port::{Mail, MailError, Mailbox, Mailer};
pub use core_domain::port::{WebhookRequest, WebhookResponse, WebhookSendError, WebhookSender};
pub use core_http::cli::{CliConfig, SiteLimits, UploadLimits};
pub use core_http::gateway::{ConfigError, GatewayConfig};
pub use core_http::kernel::{
    Body, BodyTimes, BoxError, PeerAddr, ServiceKey, ServiceKeyError, ServiceOptions, bytes_body,
    empty_body,
};
pub use core_http::{IncomingBody, ServeOptions, serve};
#[cfg(all(feature = "local", unix))]
pub use core_local::run_worker_host;
#[cfg(feature = "local")]
pub use core_local::{
    BindingLimits, LogOptions, Retention, WorkerHostCommand, Workerd, WorkerdOptions, find_workerd,
};
#[cfg(feature = "otel")]
pub use core_otel::{OtlpConfig, OtlpOptions, ProcessorSink, opentelemetry_sdk};
#[cfg(feature = "redis")]
pub use core_redis::{RedisConfig, RedisOptions};
#[cfg(feature = "s3")]
pub use core_s3::{S3Config, S3Credentials, S3Options};
#[cfg(feature = "smtp")]
pub use core_smtp::{SmtpMailer, SmtpUrl};
#[cfg(feature = "sqlx")]
pub use core_sqlx::sqlx;
#[cfg(feature = "stripe")]
pub use core_stripe::{API_BASE_URL as STRIPE_API, StripeAccount, StripeOptions};
#[cfg(feature = "webhooks")]
pub use core_webhooks::HttpSender;
pub use dns_options::DnsOptions;
pub use entropy::SystemEntropy;
pub use error::SuiteError;
pub use history_options::HistoryOptions;
pub use import::{ImportError, ImportProblem, ImportSummary};
pub use mail_options::MailOptions;
pub use metrics::{MetricsOptions, SuiteMetrics};
pub use migration_settings::MigrationSettings;
pub use moves::{
    CellState, CellUse, MoveError, MoveOptions, MovePlatformError, MoveProgress, MoveReport,
};
pub use open::{PoolOptions, PostgresOptions};
pub use outbox_folder::OutboxFolder;
pub use outbox_options::OutboxOptions;
pub use password::Argon2Hasher;
pub use relay::LogOutlet;
pub use settings::Settings;
#[cfg(feature = "local")]
pub use site_options::SiteOptions;
pub use suite::Suite;
pub use sweep_options::SweepOptions;
pub use trace_options::TraceOptions;
pub use usage::Usage;
pub use webhook_options::WebhookOptions;
pub use worker::{WorkerHandle, WorkerOptions, WorkerWake, start_worker};
