//! Every limit and time-out of a suite, in sections that can be read from a configuration file and written to one.

use core_domain::kernel::Limits;
use core_domain::registry::Hostname;
use core_http::ServeOptions;
use core_http::cli::CliConfig;
use core_http::gateway::{ConfigError, GatewayConfig};
use core_http::iam::IamOptions;
use core_http::kernel::ServiceOptions;
#[cfg(feature = "local")]
use core_local::{LogOptions, Retention, WorkerdOptions};
use serde::{Deserialize, Serialize};

use crate::billing_options::BillingOptions;
use crate::dns_options::DnsOptions;
use crate::history_options::HistoryOptions;
use crate::mail_options::MailOptions;
use crate::metrics::MetricsOptions;
use crate::migration_settings::MigrationSettings;
use crate::open::{PoolOptions, PostgresOptions};
use crate::outbox_options::OutboxOptions;
#[cfg(feature = "local")]
use crate::site_options::SiteOptions;
use crate::sweep_options::SweepOptions;
use crate::trace_options::TraceOptions;
use crate::webhook_options::WebhookOptions;
use crate::worker::WorkerOptions;

/// Every limit and time-out of a suite. A missing setting has its section's default. Durations are written as `90s` or
/// `1h 30m`, sizes in bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Limits of listeners that are opened with [`serve`](crate::serve). A suite opens no listener itself.
    pub listener: ServeOptions,
    /// Settings of the gateway. Its rate limits also apply to services that are reached directly.
    pub gateway: GatewayConfig,
    /// Requirements for signing in.
    pub iam: IamOptions,
    /// Settings of every service. Settings that the gateway also has (`rates`, `limiter_timeout`, origins, proxies) are
    /// taken from the gateway.
    pub services: ServiceOptions,
    /// Maximum numbers of objects that callers may create, and of mails that they may cause.
    pub limits: Limits,
    /// Limits of sites and uploads. `cli.sites.upload_bytes` is also the gateway's limit for uploads.
    pub cli: CliConfig,
    /// The plans and the clock of billing, and whether simulated payments are allowed.
    pub billing: BillingOptions,
    /// Number of concurrent jobs, and how they end at a stop. Whether other processes use the store is derived from the
    /// store.
    pub worker: WorkerOptions,
    /// Connections and time-outs of the store, and the size of its pages.
    pub pool: PoolOptions,
    /// When the migrations of the database run.
    pub migrations: MigrationSettings,
    /// The Postgres schema of the records, and the certificates that the server is verified with.
    pub postgres: PostgresOptions,
    /// Limits for delivering messages of the outbox to the outlet.
    pub outbox: OutboxOptions,
    /// The sender address of mails, and limits for sending them.
    pub mail: MailOptions,
    /// Name servers for the DNS records of custom domains (feature `dns`).
    pub dns: DnsOptions,
    /// Limits for sending webhooks, and their allowed receivers.
    pub webhooks: WebhookOptions,
    /// Limits for removing expired records.
    pub sweep: SweepOptions,
    /// How long ended jobs, builds, deployments and other ended records are kept.
    pub history: HistoryOptions,
    /// The interval at which gauges are refreshed, and the duration from which units of work are logged as slow.
    pub metrics: MetricsOptions,
    /// Which traces are sampled.
    pub traces: TraceOptions,
    /// Limits of the exporter of traces (feature `otel`).
    #[cfg(feature = "otel")]
    pub otlp: core_otel::OtlpOptions,
    /// Options of the Cloudflare provider (feature `cloudflare`).
    #[cfg(feature = "cloudflare")]
    pub cloudflare: crate::CloudflareOptions,
    /// Options of the Redis server that nodes share (feature `redis`).
    #[cfg(feature = "redis")]
    pub redis: core_redis::RedisOptions,
    /// Options of the bucket that stores uploads (feature `s3`).
    #[cfg(feature = "s3")]
    pub s3: core_s3::S3Options,
    /// Options of the Stripe provider (feature `stripe`).
    #[cfg(feature = "stripe")]
    pub stripe: crate::StripeOptions,
    /// The addresses of the sites and workers of the local provider (feature `local`).
    #[cfg(feature = "local")]
    pub sites: SiteOptions,
    /// The old deployments of a site that the local provider keeps (feature `local`).
    #[cfg(feature = "local")]
    pub retention: Retention,
    /// The logs of the workers and sites of the local provider (feature `local`).
    #[cfg(feature = "local")]
    pub logs: LogOptions,
    /// How the local provider runs workers (feature `local`).
    #[cfg(feature = "local")]
    pub workerd: WorkerdOptions,
}

impl Settings {
    /// Checks that a suite can be built with these settings.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.gateway.check()?;
        self.outbox.check()?;
        self.mail.check()?;
        self.dns.check()?;
        check_zones(&self.limits)?;
        self.webhooks.check()?;
        self.sweep.check()?;
        self.history.check()?;
        self.migrations.check()?;
        self.metrics.check()?;
        self.traces.check()?;
        self.worker.check()?;
        self.billing.check()?;
        #[cfg(feature = "cloudflare")]
        self.cloudflare.check().map_err(refused_by_cloudflare)?;
        #[cfg(feature = "otel")]
        self.otlp
            .check()
            .map_err(crate::trace_options::refused_by_otel)?;
        #[cfg(feature = "redis")]
        self.redis.check().map_err(refused_by_redis)?;
        #[cfg(feature = "s3")]
        self.s3.check().map_err(refused_by_s3)?;
        #[cfg(feature = "stripe")]
        self.stripe.check().map_err(refused_by_stripe)?;
        let uploads = &self.cli.uploads;
        let listener = &self.listener;
        let none = [
            ("listener.max_connections", listener.max_connections == 0),
            (
                "listener.max_connections_per_client",
                listener.max_connections_per_client == 0,
            ),
            ("listener.header_timeout", listener.header_timeout.is_zero()),
            (
                "listener.keep_alive_timeout",
                listener.keep_alive_timeout.is_zero(),
            ),
            (
                "listener.body_times.idle",
                listener.body_times.idle.is_zero(),
            ),
            (
                "listener.body_times.total",
                listener.body_times.total.is_zero(),
            ),
            (
                "listener.write_idle_timeout",
                listener.write_idle_timeout.is_zero(),
            ),
            ("listener.max_unread_bytes", listener.max_unread_bytes == 0),
            ("listener.max_header_lines", listener.max_header_lines == 0),
            ("services.max_body_bytes", self.services.max_body_bytes == 0),
            (
                "services.streams_per_caller",
                self.services.streams_per_caller == 0,
            ),
            (
                "services.body_times.idle",
                self.services.body_times.idle.is_zero(),
            ),
            (
                "services.body_times.total",
                self.services.body_times.total.is_zero(),
            ),
            ("cli.sites.upload_bytes", self.cli.sites.upload_bytes == 0),
            ("cli.sites.files", self.cli.sites.files == 0),
            ("cli.uploads.spools", uploads.spools == 0),
            (
                "cli.uploads.spools_per_platform",
                uploads.spools_per_platform == 0,
            ),
            ("cli.uploads.permits", uploads.permits == 0),
            ("cli.uploads.idle_timeout", uploads.idle_timeout.is_zero()),
            (
                "cli.uploads.upload_timeout",
                uploads.upload_timeout.is_zero(),
            ),
            (
                "pool.postgres_connections",
                self.pool.postgres_connections == 0,
            ),
            ("pool.sqlite_readers", self.pool.sqlite_readers == 0),
            (
                "pool.sqlite_acquire_timeout",
                self.pool.sqlite_acquire_timeout.is_zero(),
            ),
            (
                "pool.sqlite_read_timeout",
                self.pool.sqlite_read_timeout.is_zero(),
            ),
            ("pool.page_bytes", self.pool.page_bytes == 0),
            #[cfg(feature = "local")]
            ("retention.previews", self.retention.previews == 0),
            #[cfg(feature = "local")]
            (
                "retention.preview_age",
                self.retention.preview_age.is_zero(),
            ),
            #[cfg(feature = "local")]
            ("logs.lines", self.logs.lines == 0),
            #[cfg(feature = "local")]
            ("workerd.processes", self.workerd.processes == 0),
            #[cfg(feature = "local")]
            ("workerd.idle", self.workerd.idle.is_zero()),
            #[cfg(feature = "local")]
            (
                "workerd.answer_timeout",
                self.workerd.answer_timeout.is_zero(),
            ),
            (
                "pool.postgres_acquire_timeout",
                self.pool.postgres_acquire_timeout.is_zero(),
            ),
            (
                "pool.postgres_connect_timeout",
                self.pool.postgres_connect_timeout.is_zero(),
            ),
            (
                "pool.postgres_tcp_user_timeout",
                self.pool.postgres_tcp_user_timeout.is_zero(),
            ),
            (
                "pool.postgres_keepalive_idle",
                self.pool.postgres_keepalive_idle.is_zero(),
            ),
            (
                "pool.postgres_keepalive_interval",
                self.pool.postgres_keepalive_interval.is_zero(),
            ),
            (
                "pool.postgres_keepalive_count",
                self.pool.postgres_keepalive_count == 0,
            ),
            (
                "pool.postgres_max_idle",
                self.pool.postgres_max_idle.is_zero(),
            ),
            (
                "pool.postgres_max_staleness",
                self.pool.postgres_max_staleness.is_zero(),
            ),
            (
                "pool.postgres_answer_margin",
                self.pool.postgres_answer_margin.is_zero(),
            ),
        ];
        #[cfg(feature = "local")]
        if let Some(setting) = self.workerd.bindings.zero_limit() {
            return Err(ConfigError {
                setting,
                problem: "must be greater than 0".to_owned(),
            });
        }
        #[cfg(feature = "local")]
        if self.workerd.memory < WorkerdOptions::MIN_MEMORY {
            return Err(ConfigError {
                setting: "workerd.memory",
                problem: format!("must be at least {}", WorkerdOptions::MIN_MEMORY),
            });
        }
        match none.into_iter().find(|(_, is_none)| *is_none) {
            Some((setting, _)) => Err(ConfigError {
                setting,
                problem: "must be greater than 0".to_owned(),
            }),
            None => self.check_contradictions(),
        }
    }
}

impl Settings {
    fn check_contradictions(&self) -> Result<(), ConfigError> {
        let mut contradictions = self.contradictions().into_iter();
        match contradictions.find(|contradiction| contradiction.is_fatal) {
            Some(contradiction) => Err(contradiction.into()),
            None => Ok(()),
        }
    }
}

/// Converts the error of a Cloudflare account or option.
#[cfg(feature = "cloudflare")]
pub(crate) fn refused_by_cloudflare(error: core_cloudflare::OptionError) -> ConfigError {
    ConfigError {
        setting: error.setting,
        problem: error.problem.to_owned(),
    }
}

/// Converts the error of the URL or an option of Redis.
#[cfg(feature = "redis")]
pub(crate) fn refused_by_redis(error: core_redis::OptionError) -> ConfigError {
    ConfigError {
        setting: error.setting,
        problem: error.problem,
    }
}

/// Converts the error of the URL, the credentials or an option of a bucket.
#[cfg(feature = "s3")]
pub(crate) fn refused_by_s3(error: core_s3::OptionError) -> ConfigError {
    ConfigError {
        setting: error.setting,
        problem: error.problem,
    }
}

/// Converts the error of a Stripe account or option.
#[cfg(feature = "stripe")]
pub(crate) fn refused_by_stripe(error: core_stripe::OptionError) -> ConfigError {
    ConfigError {
        setting: error.setting,
        problem: error.problem.to_owned(),
    }
}

/// Checks that the operator's zones are hostnames in canonical form.
fn check_zones(limits: &Limits) -> Result<(), ConfigError> {
    let is_zone = |zone: &String| {
        let parsed = Hostname::parse(zone);
        parsed.is_ok_and(|name| name.as_str() == zone && !name.is_wildcard())
    };
    match limits.operator_zones.iter().find(|zone| !is_zone(zone)) {
        Some(zone) => Err(ConfigError {
            setting: "limits.operator_zones",
            problem: format!("{zone:?} must be a hostname in lower case and without a final dot"),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_read_as_they_are_written() {
        let settings = Settings::default();
        settings.check().unwrap();
        let written = serde_json::to_value(&settings).unwrap();
        assert_eq!(written["gateway"]["session_cache"], "1s");
        assert_eq!(written["services"]["body_times"]["total"], "30s");
        let read: Settings = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written);
    }

    #[test]
    fn a_setting_that_has_another_name_is_not_accepted_in_its_section() {
        let written = serde_json::to_value(Settings::default()).unwrap();
        assert!(written["gateway"].get("service_key").is_none());
        // The setting is `cli.sites.upload_bytes`.
        assert!(written["gateway"].get("upload_limit").is_none());
        assert!(written["services"].get("rates").is_none());
        let unknown = r#"{ "gateway": { "session_cach": "1s" } }"#;
        assert!(serde_json::from_str::<Settings>(unknown).is_err());
    }

    #[test]
    fn an_invalid_limit_is_refused_by_its_name() {
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap_err().setting
        };
        assert_eq!(
            refused(|s| s.pool.sqlite_readers = 0),
            "pool.sqlite_readers"
        );
        assert_eq!(
            refused(|s| s.cli.uploads.spool_bytes = 1),
            "cli.uploads.spool_bytes"
        );
        assert_eq!(refused(|s| s.mail.concurrency = 0), "mail.concurrency");
        #[cfg(feature = "local")]
        for (too_small, name) in [
            (
                (|s| s.workerd.bindings.calls = 0) as fn(&mut Settings),
                "workerd.bindings.calls",
            ),
            (
                |s| s.workerd.memory -= 256 * 1024 * 1024 + 1,
                "workerd.memory",
            ),
        ] {
            assert_eq!(refused(too_small), name);
        }
        let slow = |s: &mut Settings| s.mail.timeout = std::time::Duration::from_secs(61);
        assert_eq!(refused(slow), "mail.timeout");
        let endless = |s: &mut Settings| s.dns.timeout = std::time::Duration::from_secs(21);
        assert_eq!(refused(endless), "dns.timeout");
        let slow = |s: &mut Settings| s.webhooks.timeout = std::time::Duration::from_secs(31);
        assert_eq!(refused(slow), "webhooks.timeout");
        for (none, name) in [
            (
                (|s| s.webhooks.concurrency = 0) as fn(&mut Settings),
                "webhooks.concurrency",
            ),
            (
                |s| s.webhooks.concurrency_per_webhook = 0,
                "webhooks.concurrency_per_webhook",
            ),
        ] {
            assert_eq!(refused(none), name);
        }
        for (wrong, name) in [
            (
                (|s| s.outbox.concurrency = 0) as fn(&mut Settings),
                "outbox.concurrency",
            ),
            (
                |s| s.outbox.timeout = std::time::Duration::from_secs(61),
                "outbox.timeout",
            ),
            (|s| s.sweep.slice = 1_001, "sweep.slice"),
            (
                |s| s.migrations.lock_timeout = std::time::Duration::ZERO,
                "migrations.lock_timeout",
            ),
            (
                |s| s.history.jobs = std::time::Duration::from_secs(3_600),
                "history.jobs",
            ),
            (
                |s| s.history.audit = std::time::Duration::from_secs(30 * 24 * 60 * 60),
                "history.audit",
            ),
            (
                |s| s.sweep.slice_time = std::time::Duration::from_millis(101),
                "sweep.slice_time",
            ),
            (
                |s| s.sweep.lease = std::time::Duration::from_millis(999),
                "sweep.lease",
            ),
        ] {
            assert_eq!(refused(wrong), name);
        }
        let short = |s: &mut Settings| s.worker.lease = std::time::Duration::from_millis(999);
        assert_eq!(refused(short), "worker.lease");
        let nobody = |s: &mut Settings| s.mail.sender = "Core".to_owned();
        assert_eq!(refused(nobody), "mail.sender");
        let cache = |s: &mut Settings| s.gateway.session_cache = std::time::Duration::from_secs(6);
        assert_eq!(refused(cache), "session_cache");
    }
}
