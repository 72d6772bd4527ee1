//! Rules for settings that contradict each other.

use std::fmt::{Display, Formatter};

use core_domain::gateway::{RateKind, RatePolicy};
use core_http::gateway::ConfigError;
use core_http::kernel::EVENT_HEARTBEAT;

use crate::open::{PoolOptions, StoreChoice};
use crate::{Settings, SuiteBuilder};

/// The smallest buffer for the head of a request, in bytes.
const MIN_HEAD_BYTES: usize = 8 * 1024;

/// A setting that contradicts another one or has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The setting to change.
    pub setting: &'static str,
    /// The reason, with the other setting and both values.
    pub problem: String,
    /// Whether a suite refuses to start. If not, it works, but not as the setting says.
    pub is_fatal: bool,
}

impl Display for Contradiction {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.setting, self.problem)
    }
}

impl From<Contradiction> for ConfigError {
    fn from(contradiction: Contradiction) -> Self {
        Self {
            setting: contradiction.setting,
            problem: contradiction.problem,
        }
    }
}

/// The contradictions found so far.
#[derive(Debug, Default)]
struct Contradictions(Vec<Contradiction>);

impl Contradictions {
    /// Adds a contradiction that does not prevent a suite from working.
    fn warn(&mut self, is_found: bool, setting: &'static str, problem: impl FnOnce() -> String) {
        self.add(is_found, setting, false, problem);
    }

    /// Adds a contradiction that prevents a suite from working.
    fn refuse(&mut self, is_found: bool, setting: &'static str, problem: impl FnOnce() -> String) {
        self.add(is_found, setting, true, problem);
    }

    fn add(
        &mut self,
        is_found: bool,
        setting: &'static str,
        is_fatal: bool,
        problem: impl FnOnce() -> String,
    ) {
        if is_found {
            self.0.push(Contradiction {
                setting,
                problem: problem(),
                is_fatal,
            });
        }
    }
}

impl Settings {
    /// Returns the settings that contradict each other or have no effect.
    #[must_use]
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Contradictions::default();
        connections(self, &mut found);
        bodies(self, &mut found);
        times(self, &mut found);
        rates(self, &mut found);
        limits(self, &mut found);
        found.0
    }
}

impl SuiteBuilder {
    /// Returns the settings that contradict each other or the parts of the suite. [`Self::check`] fails on the fatal
    /// ones; [`Self::build`] logs the others.
    #[must_use]
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Contradictions(self.settings.contradictions());
        let is_ours_alone = self.store.is_exclusive();
        found.refuse(
            self.settings.worker.slots == 0 && is_ours_alone,
            "worker.slots",
            || "must be greater than 0: no other process can run the jobs of this store".to_owned(),
        );
        store(self, &mut found);
        let gateway = &self.settings.gateway;
        found.warn(
            gateway.cors_credentials && gateway.allowed_origins.is_empty(),
            "gateway.cors_credentials",
            || "has no effect without allowed origins".to_owned(),
        );
        found.warn(
            !gateway.extra_cors_headers.is_empty() && gateway.allowed_origins.is_empty(),
            "gateway.extra_cors_headers",
            || "has no effect without allowed origins".to_owned(),
        );
        provider(self, &mut found);
        stripe(self, &mut found);
        redis(self, &mut found);
        s3(self, &mut found);
        #[cfg(feature = "local")]
        if self.is_local() {
            for (setting, problem) in self.settings.sites.shared_with(&self.iam_url) {
                found.warn(true, setting, || problem);
            }
        }
        found.0
    }
}

/// Finds a second store beside a pool of sqlx, and settings of a store that is not used.
fn store(builder: &SuiteBuilder, found: &mut Contradictions) {
    let store = &builder.store;
    let is_pool = store.is_host_pool()
        || builder
            .replaced_stores
            .iter()
            .any(StoreChoice::is_host_pool);
    // The default is the first one that is replaced.
    let replaced = builder.replaced_stores.iter().skip(1);
    let mut others = replaced
        .chain([store])
        .filter(|store| !store.is_host_pool());
    if is_pool && let Some(other) = others.next() {
        found.refuse(true, "store", || {
            let other = other.method();
            format!("both `sqlx` and `{other}` choose a store: call only one of them")
        });
    }
    let postgres = &builder.settings.postgres;
    found.warn(
        !store.is_postgres() && (postgres.schema.is_some() || postgres.root_certificates.is_some()),
        "postgres",
        || "has no effect: the store is not Postgres".to_owned(),
    );
    found.warn(
        store.is_host_pool() && postgres.root_certificates.is_some(),
        "postgres.root_certificates",
        || "has no effect: the pool of the host program has its own certificates".to_owned(),
    );
    found.refuse(
        !builder.cells.is_empty() && !matches!(store, StoreChoice::Postgres(_)),
        "cells",
        || "need a Postgres database as the store, which is the home cell".to_owned(),
    );
    let (pool, defaults) = (&builder.settings.pool, PoolOptions::default());
    found.warn(
        builder.replica_url.is_some() && !matches!(store, StoreChoice::Postgres(_)),
        "postgres_replica",
        || "has no effect: lists are read from the only store".to_owned(),
    );
    found.warn(
        builder.replica_url.is_none()
            && pool.postgres_max_staleness != defaults.postgres_max_staleness,
        "pool.postgres_max_staleness",
        || "has no effect without a standby".to_owned(),
    );
    found.warn(
        store.is_host_pool() && pool.postgres_connections != defaults.postgres_connections,
        "pool.postgres_connections",
        || "has no effect: the pool of the host program has its own limit".to_owned(),
    );
}

/// Finds settings of a provider that is not used.
#[cfg(all(feature = "cloudflare", feature = "local"))]
fn provider(builder: &SuiteBuilder, found: &mut Contradictions) {
    let settings = &builder.settings;
    let is_cloudflare = builder.cloudflare.is_some();
    let at_cloudflare = || "has no effect: infrastructure is created at Cloudflare".to_owned();
    found.warn(
        is_cloudflare && settings.retention != core_local::Retention::default(),
        "retention",
        at_cloudflare,
    );
    found.warn(
        is_cloudflare && settings.workerd != core_local::WorkerdOptions::default(),
        "workerd",
        at_cloudflare,
    );
    found.warn(
        builder.is_local() && settings.cloudflare != crate::CloudflareOptions::default(),
        "cloudflare",
        || "has no effect without a Cloudflare account".to_owned(),
    );
}

#[cfg(not(all(feature = "cloudflare", feature = "local")))]
fn provider(_: &SuiteBuilder, _: &mut Contradictions) {}

/// Finds options of Stripe without an account.
#[cfg(feature = "stripe")]
fn stripe(builder: &SuiteBuilder, found: &mut Contradictions) {
    found.warn(
        builder.stripe.is_none() && builder.settings.stripe != crate::StripeOptions::default(),
        "stripe",
        || "has no effect without a Stripe account".to_owned(),
    );
}

#[cfg(not(feature = "stripe"))]
fn stripe(_: &SuiteBuilder, _: &mut Contradictions) {}

/// Finds a Redis server without other nodes, and options of Redis without a server.
#[cfg(feature = "redis")]
fn redis(builder: &SuiteBuilder, found: &mut Contradictions) {
    let has_server = builder.redis.is_some();
    found.warn(has_server && builder.store.is_exclusive(), "redis", || {
        "only counts requests: the store has no other nodes that could be notified".to_owned()
    });
    let options = &builder.settings.redis;
    found.warn(
        !has_server && *options != core_redis::RedisOptions::default(),
        "redis",
        || "has no effect without a Redis server".to_owned(),
    );
    found.warn(
        has_server && builder.rate_limiter.is_some() && builder.notices.is_some(),
        "redis",
        || "has no effect: the program has its own rate limiter and notices".to_owned(),
    );
}

#[cfg(not(feature = "redis"))]
fn redis(_: &SuiteBuilder, _: &mut Contradictions) {}

/// Finds options of a bucket without one, and a bucket beside another store for uploads.
#[cfg(feature = "s3")]
fn s3(builder: &SuiteBuilder, found: &mut Contradictions) {
    let has_bucket = builder.s3.is_some();
    found.warn(
        !has_bucket && builder.settings.s3 != core_s3::S3Options::default(),
        "s3",
        || "has no effect without a bucket".to_owned(),
    );
    found.warn(has_bucket && builder.blobs.is_some(), "s3", || {
        "has no effect: the program has its own store for uploads".to_owned()
    });
}

#[cfg(not(feature = "s3"))]
fn s3(_: &SuiteBuilder, _: &mut Contradictions) {}

/// Connections and streams: one client must not be able to use up all connections of a listener.
fn connections(settings: &Settings, found: &mut Contradictions) {
    let listener = &settings.listener;
    let (all, one) = (
        listener.max_connections,
        listener.max_connections_per_client,
    );
    found.warn(one >= all, "listener.max_connections_per_client", || {
        format!("is {one}, so that one client can take all connections (listener.max_connections, {all})")
    });
    let streams = settings.services.streams_per_caller;
    found.warn(streams >= all, "services.streams_per_caller", || {
        format!("is {streams}, so that one caller can take all connections (listener.max_connections, {all})")
    });
}

/// Sizes for which the smaller one of two settings applies.
fn bodies(settings: &Settings, found: &mut Contradictions) {
    let listener = &settings.listener;
    let head = listener.max_head_bytes;
    found.warn(head < MIN_HEAD_BYTES, "listener.max_head_bytes", || {
        format!("is {head}, but {MIN_HEAD_BYTES} bytes are always accepted")
    });
    let (gateway, services) = (
        settings.gateway.body_limit,
        settings.services.max_body_bytes as u64,
    );
    found.warn(gateway > services, "gateway.body_limit", || {
        format!("is {gateway}, but services accept only services.max_body_bytes, {services}")
    });
    found.warn(gateway < services, "services.max_body_bytes", || {
        format!("is {services}, but the gateway passes on only gateway.body_limit, {gateway}")
    });
    let (page, unread) = (settings.pool.page_bytes, listener.max_unread_bytes);
    found.warn(page > unread, "pool.page_bytes", || {
        format!("is {page}, but a client that reads such a page slowly is cut off at listener.max_unread_bytes, {unread}")
    });
    let (spool, upload) = (
        settings.cli.uploads.spool_bytes,
        settings.cli.sites.upload_bytes,
    );
    found.refuse(spool < upload, "cli.uploads.spool_bytes", || {
        format!("is {spool}, less than the largest upload (cli.sites.upload_bytes, {upload})")
    });
    let (platform, all) = (
        settings.cli.uploads.spools_per_platform,
        settings.cli.uploads.spools,
    );
    found.warn(platform > all, "cli.uploads.spools_per_platform", || {
        format!("is {platform}, but cli.uploads.spools allows only {all} in all")
    });
    sites(settings, found);
    let (one, all) = (
        settings.webhooks.concurrency_per_webhook,
        settings.webhooks.concurrency,
    );
    found.warn(one > all, "webhooks.concurrency_per_webhook", || {
        format!("is {one}, but webhooks.concurrency allows only {all} in all")
    });
}

/// Sizes and numbers of sites and their uploads.
fn sites(settings: &Settings, found: &mut Contradictions) {
    let sites = &settings.cli.sites;
    let (file, site) = (sites.file_bytes, sites.unpacked_bytes);
    found.warn(file > site, "cli.sites.file_bytes", || {
        format!(
            "is {file}, but cli.sites.unpacked_bytes allows only {site} for all files of a site"
        )
    });
    let platform = settings.limits.site_bytes_per_platform;
    found.warn(site > platform, "cli.sites.unpacked_bytes", || {
        format!("is {site}, but limits.site_bytes_per_platform allows only {platform} for all sites of a platform")
    });
    let (checked, received) = (settings.cli.uploads.permits, settings.cli.uploads.spools);
    found.warn(checked > received, "cli.uploads.permits", || {
        format!("is {checked}, but cli.uploads.spools allows only {received} uploads at a time")
    });
}

/// Times for which the shorter one of two settings ends a request.
fn times(settings: &Settings, found: &mut Contradictions) {
    let (listener, gateway) = (&settings.listener, &settings.gateway);
    let (services, uploads, pool) = (&settings.services, &settings.cli.uploads, &settings.pool);
    for (setting, longer, other, shorter) in [
        (
            "listener.body_times.idle",
            listener.body_times.idle,
            "listener.body_times.total",
            listener.body_times.total,
        ),
        (
            "services.body_times.idle",
            services.body_times.idle,
            "services.body_times.total",
            services.body_times.total,
        ),
        (
            "services.body_times.total",
            services.body_times.total,
            "listener.body_times.total",
            listener.body_times.total,
        ),
        (
            "services.body_times.idle",
            services.body_times.idle,
            "listener.body_times.idle",
            listener.body_times.idle,
        ),
        (
            "cli.uploads.upload_timeout",
            uploads.upload_timeout,
            "listener.body_times.total",
            listener.body_times.total,
        ),
        (
            "cli.uploads.idle_timeout",
            uploads.idle_timeout,
            "listener.body_times.idle",
            listener.body_times.idle,
        ),
        (
            "cli.uploads.idle_timeout",
            uploads.idle_timeout,
            "gateway.upload_idle_timeout",
            gateway.upload_idle_timeout,
        ),
        (
            "gateway.upload_idle_timeout",
            gateway.upload_idle_timeout,
            "listener.body_times.idle",
            listener.body_times.idle,
        ),
        (
            "gateway.limiter_timeout",
            gateway.limiter_timeout,
            "gateway.response_timeout",
            gateway.response_timeout,
        ),
        (
            "pool.postgres_acquire_timeout",
            pool.postgres_acquire_timeout,
            "gateway.response_timeout",
            gateway.response_timeout,
        ),
        (
            "pool.postgres_statement_timeout",
            pool.postgres_statement_timeout,
            "gateway.response_timeout",
            gateway.response_timeout,
        ),
    ] {
        found.warn(longer > shorter, setting, || {
            format!("is {longer:?}, but {other} ends a request after {shorter:?}")
        });
    }
    let (lock, statement) = (pool.postgres_lock_timeout, pool.postgres_statement_timeout);
    found.warn(
        lock > statement && !statement.is_zero(),
        "pool.postgres_lock_timeout",
        || format!("is {lock:?}, but pool.postgres_statement_timeout ends a statement after {statement:?}"),
    );
    let idle = gateway.response_idle_timeout;
    found.warn(idle <= EVENT_HEARTBEAT, "gateway.response_idle_timeout", || {
        format!("is {idle:?}, so that the gateway cuts off event streams, which send something every {EVENT_HEARTBEAT:?}")
    });
    // A heartbeat must be written within this time.
    let (lease, acquire) = (settings.worker.lease * 2 / 3, pool.postgres_acquire_timeout);
    found.warn(lease <= acquire, "worker.lease", || {
        format!("leaves {lease:?} for a heartbeat, which may wait longer for a connection (pool.postgres_acquire_timeout, {acquire:?})")
    });
}

/// Rate limits for which the smaller one of two settings applies.
fn rates(settings: &Settings, found: &mut Contradictions) {
    let rates = &settings.gateway.rates;
    for (setting, narrow, wide) in [
        ("gateway.rates.default", RateKind::Default, RateKind::Client),
        ("gateway.rates.strict", RateKind::Strict, RateKind::Client),
        (
            "gateway.rates.failed-accounts-of-client",
            RateKind::FailedAccountsOfClient,
            RateKind::FailedSignInsOfClient,
        ),
    ] {
        let (own, over_all) = (rates.policy(narrow), rates.policy(wide));
        found.warn(is_ineffective(own, over_all), setting, || {
            format!(
                "allows {} requests in {:?}, but gateway.rates.{} only {} in {:?}",
                own.quota(),
                own.window(),
                wide.as_str(),
                over_all.quota(),
                over_all.window()
            )
        });
    }
}

/// Returns whether a policy never refuses a request that the other one accepts: it allows more requests in the same or
/// a shorter time.
fn is_ineffective(own: &RatePolicy, over_all: &RatePolicy) -> bool {
    own.quota() > over_all.quota() && own.window() <= over_all.window()
}

/// Maximum numbers of objects that callers create.
fn limits(settings: &Settings, found: &mut Contradictions) {
    let limits = &settings.limits;
    found.refuse(
        limits.sessions_per_user == 0,
        "limits.sessions_per_user",
        || "is 0, so that no user can sign in".to_owned(),
    );
    found.refuse(
        limits.members_per_organization == 0,
        "limits.members_per_organization",
        || "is 0, so that an organization cannot have its owner".to_owned(),
    );
    let (hour, day) = (
        limits.mail.invitations_per_hour,
        limits.mail.invitations_per_day,
    );
    found.warn(hour > day, "limits.mail.invitations_per_hour", || {
        format!("is {hour}, but limits.mail.invitations_per_day allows only {day}")
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Suite;

    type Change = fn(&mut Settings);

    fn of(change: Change) -> Vec<Contradiction> {
        let mut settings = Settings::default();
        change(&mut settings);
        settings.contradictions()
    }

    #[test]
    fn the_defaults_do_not_contradict_each_other() {
        assert_eq!(Suite::builder().contradictions(), []);
    }

    #[test]
    fn ineffective_limits_are_reported_with_both_values() {
        let cases: [(Change, &str, [&str; 2]); 20] = [
            (
                |s| s.cli.sites.unpacked_bytes = 1_000,
                "cli.sites.file_bytes",
                ["26214400", "1000"],
            ),
            (
                |s| s.limits.site_bytes_per_platform = 1_000,
                "cli.sites.unpacked_bytes",
                ["536870912", "1000"],
            ),
            (
                |s| s.cli.uploads.permits = 65,
                "cli.uploads.permits",
                ["65", "64"],
            ),
            (
                |s| s.listener.max_connections = 100,
                "listener.max_connections_per_client",
                ["128", "100"],
            ),
            (
                |s| s.services.streams_per_caller = 1_100,
                "services.streams_per_caller",
                ["1100", "1024"],
            ),
            (
                |s| s.listener.max_head_bytes = 4_000,
                "listener.max_head_bytes",
                ["4000", "8192"],
            ),
            (
                |s| s.gateway.body_limit = 2_000_000,
                "gateway.body_limit",
                ["2000000", "1048576"],
            ),
            (
                |s| s.gateway.body_limit = 1_000,
                "services.max_body_bytes",
                ["1048576", "1000"],
            ),
            (
                |s| s.pool.page_bytes = 100_000_000,
                "pool.page_bytes",
                ["100000000", "67108864"],
            ),
            (
                |s| s.cli.uploads.spools_per_platform = 65,
                "cli.uploads.spools_per_platform",
                ["65", "64"],
            ),
            (
                |s| s.webhooks.concurrency = 3,
                "webhooks.concurrency_per_webhook",
                ["4", "3"],
            ),
            (
                |s| s.services.body_times.idle = Duration::from_secs(31),
                "services.body_times.idle",
                ["31s", "30s"],
            ),
            (
                |s| s.cli.uploads.upload_timeout = Duration::from_secs(1_000),
                "cli.uploads.upload_timeout",
                ["1000s", "900s"],
            ),
            (
                |s| s.pool.postgres_acquire_timeout = Duration::from_secs(31),
                "pool.postgres_acquire_timeout",
                ["31s", "30s"],
            ),
            (
                |s| s.pool.postgres_lock_timeout = Duration::from_secs(21),
                "pool.postgres_lock_timeout",
                ["21s", "20s"],
            ),
            (
                |s| s.gateway.response_idle_timeout = Duration::from_secs(15),
                "gateway.response_idle_timeout",
                ["15s", "15s"],
            ),
            (
                |s| s.worker.lease = Duration::from_secs(15),
                "worker.lease",
                ["10s", "10s"],
            ),
            (
                |s| {
                    let minute = Duration::from_secs(60);
                    s.gateway.rates.set(RateKind::Client, 50, minute).unwrap();
                },
                "gateway.rates.default",
                ["100", "50"],
            ),
            (
                |s| {
                    let (kind, hour) =
                        (RateKind::FailedAccountsOfClient, Duration::from_secs(3_600));
                    s.gateway.rates.set(kind, 200, hour).unwrap();
                },
                "gateway.rates.failed-accounts-of-client",
                ["200", "100"],
            ),
            (
                |s| s.limits.mail.invitations_per_day = 2,
                "limits.mail.invitations_per_hour",
                ["3", "2"],
            ),
        ];
        for (change, setting, values) in cases {
            let found = of(change);
            let one = found.iter().find(|one| one.setting == setting);
            let one = one.unwrap_or_else(|| panic!("{setting}: {found:?}"));
            assert!(!one.is_fatal, "{one}");
            for value in values {
                assert!(one.problem.contains(value), "{one}");
            }
        }
    }

    #[test]
    fn a_fatal_contradiction_is_refused() {
        let cases: [(Change, &str); 3] = [
            (|s| s.cli.uploads.spool_bytes = 1, "cli.uploads.spool_bytes"),
            (
                |s| s.limits.sessions_per_user = 0,
                "limits.sessions_per_user",
            ),
            (
                |s| s.limits.members_per_organization = 0,
                "limits.members_per_organization",
            ),
        ];
        for (change, setting) in cases {
            let found = of(change);
            assert!(
                found
                    .iter()
                    .any(|one| one.is_fatal && one.setting == setting)
            );
            let mut settings = Settings::default();
            change(&mut settings);
            assert_eq!(settings.check().unwrap_err().setting, setting);
        }
    }

    #[test]
    fn settings_of_unused_parts_are_reported() {
        let found = |builder: SuiteBuilder| {
            let found = builder.contradictions().into_iter();
            found.map(|one| one.setting).collect::<Vec<_>>()
        };
        let builder = Suite::builder().settings(|s| {
            s.postgres.schema = Some("core".to_owned());
            s.gateway.cors_credentials = true;
        });
        assert_eq!(found(builder), ["postgres", "gateway.cors_credentials"]);
        let builder = Suite::builder().postgres("postgres://core@localhost/core");
        let builder = builder.settings(|s| s.postgres.schema = Some("core".to_owned()));
        assert_eq!(found(builder), [""; 0]);
    }

    #[test]
    fn a_standby_is_kept_whatever_the_order_of_calls_and_reported_without_postgres() {
        let (url, replica) = ("postgres://primary/core", "postgres://standby/core");
        let before = Suite::builder().postgres_replica(replica).postgres(url);
        let after = Suite::builder().postgres(url).postgres_replica(replica);
        for builder in [before, after] {
            assert_eq!(builder.replica_url.as_ref().unwrap().expose(), replica);
            assert_eq!(builder.contradictions(), []);
        }
        let builder = Suite::builder().postgres_replica(replica);
        let stale = |s: &mut Settings| s.pool.postgres_max_staleness = Duration::from_secs(9);
        for (builder, setting) in [
            (builder, "postgres_replica"),
            (
                Suite::builder().settings(stale),
                "pool.postgres_max_staleness",
            ),
        ] {
            assert_eq!(builder.contradictions()[0].setting, setting);
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn a_redis_server_without_other_nodes_and_options_without_a_server_are_reported() {
        let found = |builder: SuiteBuilder| {
            let found = builder.contradictions().into_iter();
            found.map(|one| one.problem).collect::<Vec<_>>().join(" ")
        };
        let url = "redis://127.0.0.1:6379";
        assert!(found(Suite::builder().redis(url)).contains("only counts"));
        let postgres = Suite::builder().postgres("postgres://core@localhost/core");
        assert_eq!(found(postgres.clone().redis(url)), "");
        let prefix = |s: &mut Settings| s.redis.key_prefix = "other:".to_owned();
        assert_eq!(found(postgres.clone().redis(url).settings(prefix)), "");
        assert!(found(postgres.settings(prefix)).contains("without a Redis server"));
    }

    #[cfg(feature = "s3")]
    #[test]
    fn options_without_a_bucket_and_a_bucket_beside_another_store_are_reported() {
        let found = |builder: SuiteBuilder| {
            let found = builder.contradictions().into_iter();
            found.map(|one| one.problem).collect::<Vec<_>>().join(" ")
        };
        let region = |s: &mut Settings| s.s3.region = Some("eu-central-1".to_owned());
        let builder = Suite::builder().settings(region);
        assert!(found(builder.clone()).contains("without a bucket"));
        let builder = builder.s3("s3://uploads", crate::S3Credentials::role([]));
        assert_eq!(found(builder.clone()), "");
        let blobs = core_domain::testing::MemoryBlobs::default();
        let builder = builder.blobs(std::sync::Arc::new(blobs));
        assert!(found(builder).contains("its own store for uploads"));
    }

    #[cfg(feature = "sqlx")]
    #[tokio::test]
    async fn a_second_store_beside_a_pool_is_refused() {
        let pool = crate::sqlx::PgPool::connect_lazy("postgres://core@localhost/core").unwrap();
        let builder = Suite::builder().sqlx(pool.clone());
        assert_eq!(builder.contradictions(), []);
        let both = [
            builder.clone().sqlite("core.db"),
            builder.clone().postgres("postgres://core@localhost/core"),
            builder.clone().in_memory(),
            Suite::builder().sqlite("core.db").sqlx(pool.clone()),
        ];
        for builder in both {
            let found = builder.contradictions();
            assert_eq!((found[0].setting, found[0].is_fatal), ("store", true));
            assert!(matches!(
                builder.check(),
                Err(crate::SuiteError::Setting(_))
            ));
        }
        let of_another_pool = builder.settings(|s| {
            s.postgres.root_certificates = Some("roots.pem".into());
            s.pool.postgres_connections = 4;
        });
        let found = of_another_pool.contradictions();
        let settings: Vec<_> = found
            .iter()
            .map(|one| (one.setting, one.is_fatal))
            .collect();
        let ineffective = ["postgres.root_certificates", "pool.postgres_connections"];
        assert_eq!(settings, ineffective.map(|setting| (setting, false)));
    }

    #[cfg(all(feature = "cloudflare", feature = "local"))]
    #[test]
    fn settings_of_an_unused_provider_are_reported() {
        let builder = Suite::builder().settings(|s| s.cloudflare.requests = 100);
        let found = builder.contradictions();
        assert_eq!(found[0].setting, "cloudflare");
    }
}
