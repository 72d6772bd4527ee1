//! The builder of a suite.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use core_domain::kernel::{Clock, Entropy, Secret, SuiteService};
use core_domain::port::{
    Blobs, DnsResolver, Infrastructure, Mailer, Notices, Outlet, Passkeys, PasswordHasher,
    Payments, RateLimiter, SiteArchives, SpanSink, Store, TaxCalculator, WebhookSender,
};
use core_domain::use_case::provisioning::{JobKind, KindError, Kinds};

use crate::cells::Cells;
use crate::open::{PostgresUrls, StoreChoice};
use crate::relay::LogOutlet;
use crate::secret::{InstallationSecret, MasterKey};
use crate::settings::Settings;
use crate::{Suite, SystemClock, SystemEntropy};

/// The parts and settings of a suite. Every part has a default that works on one machine.
#[derive(Clone, Debug)]
pub struct SuiteBuilder {
    pub(crate) store: StoreChoice,
    /// The stores that a later call has replaced.
    pub(crate) replaced_stores: Vec<StoreChoice>,
    /// The URL of standbys for lists that may be stale; `None` if all lists read the primary.
    pub(crate) replica_url: Option<Secret>,
    /// The cells beside the store, which is home.
    pub(crate) cells: Cells,
    pub(crate) data_folder: Option<PathBuf>,
    /// `None` uses the system's clock, and on Postgres the database's clock inside units of work.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) hasher: Option<Arc<dyn PasswordHasher>>,
    pub(crate) infrastructure: Option<Arc<dyn Infrastructure>>,
    #[cfg(feature = "cloudflare")]
    pub(crate) cloudflare: Option<crate::CloudflareAccount>,
    pub(crate) blobs: Option<Arc<dyn Blobs>>,
    /// The URL and the credentials of the bucket for uploads.
    #[cfg(feature = "s3")]
    pub(crate) s3: Option<(String, core_s3::S3Credentials)>,
    pub(crate) archives: Option<Arc<dyn SiteArchives>>,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) mailer: Option<Arc<dyn Mailer>>,
    pub(crate) webhook_sender: Option<Arc<dyn WebhookSender>>,
    #[cfg(feature = "smtp")]
    pub(crate) smtp: Option<String>,
    pub(crate) passkeys: Option<Arc<dyn Passkeys>>,
    pub(crate) payments: Option<Arc<dyn Payments>>,
    pub(crate) taxes: Option<Arc<dyn TaxCalculator>>,
    #[cfg(feature = "stripe")]
    pub(crate) stripe: Option<crate::StripeAccount>,
    pub(crate) dns_resolver: Option<Arc<dyn DnsResolver>>,
    pub(crate) rate_limiter: Option<Arc<dyn RateLimiter>>,
    pub(crate) notices: Option<Arc<dyn Notices>>,
    pub(crate) span_sink: Option<Arc<dyn SpanSink>>,
    /// The collector that receives the traces.
    #[cfg(feature = "otel")]
    pub(crate) otlp: Option<core_otel::OtlpConfig>,
    /// The URL of the Redis server.
    #[cfg(feature = "redis")]
    pub(crate) redis: Option<Secret>,
    pub(crate) secret: Option<InstallationSecret>,
    pub(crate) master_key: Option<MasterKey>,
    pub(crate) service_key: Option<Secret>,
    pub(crate) iam_url: String,
    /// The public URL of the gateway; `None` if clients cannot look up IAM.
    pub(crate) gateway_url: Option<String>,
    /// The public URL of the billing service; `None` if billing has no pages.
    pub(crate) billing_url: Option<String>,
    /// The addresses of the services that run in other processes.
    pub(crate) remote_services: BTreeMap<SuiteService, String>,
    #[cfg(feature = "local")]
    pub(crate) site_port: u16,
    #[cfg(feature = "local")]
    pub(crate) local_latency: std::time::Duration,
    /// Job kinds registered by the embedding program, or the first error from registering them.
    pub(crate) kinds: Result<Kinds, KindError>,
    #[cfg(feature = "local")]
    pub(crate) workerd: Option<core_local::Workerd>,
    #[cfg(feature = "local")]
    pub(crate) worker_host: Option<core_local::WorkerHostCommand>,
    pub(crate) settings: Settings,
}

impl Default for SuiteBuilder {
    fn default() -> Self {
        Self {
            store: StoreChoice::Memory,
            cells: Cells::default(),
            replaced_stores: Vec::new(),
            replica_url: None,
            data_folder: None,
            clock: None,
            entropy: Arc::new(SystemEntropy),
            hasher: None,
            infrastructure: None,
            #[cfg(feature = "cloudflare")]
            cloudflare: None,
            blobs: None,
            #[cfg(feature = "s3")]
            s3: None,
            archives: None,
            outlet: Arc::new(LogOutlet),
            mailer: None,
            webhook_sender: None,
            #[cfg(feature = "smtp")]
            smtp: None,
            passkeys: None,
            payments: None,
            taxes: None,
            #[cfg(feature = "stripe")]
            stripe: None,
            dns_resolver: None,
            rate_limiter: None,
            notices: None,
            span_sink: None,
            #[cfg(feature = "otel")]
            otlp: None,
            #[cfg(feature = "redis")]
            redis: None,
            secret: None,
            master_key: None,
            service_key: None,
            iam_url: "http://127.0.0.1:8081".to_owned(),
            gateway_url: None,
            billing_url: None,
            remote_services: BTreeMap::new(),
            #[cfg(feature = "local")]
            site_port: 8090,
            #[cfg(feature = "local")]
            local_latency: std::time::Duration::ZERO,
            kinds: Ok(Kinds::new()),
            #[cfg(feature = "local")]
            workerd: None,
            #[cfg(feature = "local")]
            worker_host: None,
            settings: Settings::default(),
        }
    }
}

impl Suite {
    /// Creates a builder with defaults that work on one machine.
    #[must_use]
    pub fn builder() -> SuiteBuilder {
        SuiteBuilder::default()
    }
}

impl SuiteBuilder {
    /// Stores records in the memory of this process; they are lost when it ends. This is the default.
    #[must_use]
    pub fn in_memory(self) -> Self {
        self.choose_store(StoreChoice::Memory)
    }

    /// Stores records in a SQLite file (feature `sqlite`).
    #[must_use]
    pub fn sqlite(self, file: impl Into<PathBuf>) -> Self {
        self.choose_store(StoreChoice::Sqlite(file.into()))
    }

    /// Stores records in a Postgres database (feature `postgres`).
    #[must_use]
    pub fn postgres(self, url: impl Into<String>) -> Self {
        self.choose_store(StoreChoice::Postgres(PostgresUrls {
            url: url.into(),
            direct_url: None,
        }))
    }

    /// Stores records in a Postgres database behind a pooler that assigns a server connection to each transaction, such as
    /// PgBouncer with `pool_mode = transaction` (feature `postgres`). `direct_url` is the URL of the same database without
    /// the pooler. Migrations, notices between processes and backups use it, because they need a session.
    #[must_use]
    pub fn pooled_postgres(self, url: impl Into<String>, direct_url: impl Into<String>) -> Self {
        self.choose_store(StoreChoice::Postgres(PostgresUrls {
            url: url.into(),
            direct_url: Some(direct_url.into()),
        }))
    }

    /// Reads lists from a standby of the Postgres database (feature `postgres`). On another store than that of
    /// [`SuiteBuilder::postgres`] or [`SuiteBuilder::pooled_postgres`] it has no effect, and [`Self::contradictions`]
    /// reports it.
    ///
    /// A list may then lack commits of the last 2 seconds (`settings.pool.postgres_max_staleness`), also those of the
    /// caller. Authorization and everything that is not a list with pages read the primary. So do lists while the standby is
    /// further behind or cannot be reached.
    #[must_use]
    pub fn postgres_replica(mut self, url: impl Into<String>) -> Self {
        self.replica_url = Some(Secret::new(url));
        self
    }

    /// Spreads the platforms over several Postgres databases (feature `postgres`). The store of
    /// [`SuiteBuilder::postgres`] or [`SuiteBuilder::pooled_postgres`] is the home cell, which has everything that belongs
    /// to several platforms. See the [guide](crate::guide::operations) for when and how.
    #[must_use]
    pub fn cells(mut self, cells: Cells) -> Self {
        self.cells = cells;
        self
    }

    /// Stores records in a Postgres database, on the connections of this pool (feature `sqlx`). See [`core_sqlx`] for the
    /// options of the pool that suit the suite.
    ///
    /// The number of connections, the time-out for acquiring one, TLS and the credentials are those of the pool. The
    /// schema comes from `settings.postgres.schema`, and the other time-outs from `settings.pool`.
    ///
    /// A builder that also names another store fails to build.
    #[cfg(feature = "sqlx")]
    #[must_use]
    pub fn sqlx(self, pool: core_sqlx::sqlx::PgPool) -> Self {
        self.choose_store(StoreChoice::Sqlx(pool))
    }

    /// Stores records in the given store.
    #[must_use]
    pub fn store(self, store: Arc<dyn Store>) -> Self {
        self.choose_store(StoreChoice::Custom(store))
    }

    /// Replaces the store. [`Self::contradictions`] reports a pool of sqlx beside another store.
    fn choose_store(mut self, store: StoreChoice) -> Self {
        let replaced = std::mem::replace(&mut self.store, store);
        self.replaced_stores.push(replaced);
        self
    }

    /// Sets the folder for uploads that are not stored elsewhere, the installation's secret and the data of the local provider. Default: a temporary
    /// folder that is deleted with the suite.
    #[must_use]
    pub fn data_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_folder = Some(folder.into());
        self
    }

    /// Sets the clock. Default: the system's clock, and on Postgres the database's clock inside units of work.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the source of randomness. It must be cryptographically secure.
    #[must_use]
    pub fn entropy(mut self, entropy: Arc<dyn Entropy>) -> Self {
        self.entropy = entropy;
        self
    }

    /// Sets the password hasher. Default: Argon2id with 19 MiB of memory.
    #[must_use]
    pub fn password_hasher(mut self, hasher: Arc<dyn PasswordHasher>) -> Self {
        self.hasher = Some(hasher);
        self
    }

    /// Sets the infrastructure provider. Default: infrastructure on this machine (feature `local`). With another
    /// provider `Suite::sites` returns `None`.
    #[must_use]
    pub fn infrastructure(mut self, infrastructure: Arc<dyn Infrastructure>) -> Self {
        self.infrastructure = Some(infrastructure);
        self
    }

    /// Sets the payment provider. Default: the embedded one, whose money is simulated; see
    /// [`BillingOptions`](crate::BillingOptions).
    #[must_use]
    pub fn payments(mut self, payments: Arc<dyn Payments>) -> Self {
        self.payments = Some(payments);
        self
    }

    /// Sets how invoices are taxed. Default: by `settings.billing.tax_rates`.
    #[must_use]
    pub fn taxes(mut self, taxes: Arc<dyn TaxCalculator>) -> Self {
        self.taxes = Some(taxes);
        self
    }

    /// Charges invoices in a Stripe account (feature `stripe`), with the options in `settings.stripe`. A provider set with
    /// [`SuiteBuilder::payments`] takes precedence.
    #[cfg(feature = "stripe")]
    #[must_use]
    pub fn stripe(mut self, account: crate::StripeAccount) -> Self {
        self.stripe = Some(account);
        self
    }

    /// Creates infrastructure in a Cloudflare account (feature `cloudflare`), with the options in
    /// `settings.cloudflare`. `Suite::sites` then returns `None`. A provider set with [`SuiteBuilder::infrastructure`]
    /// takes precedence.
    #[cfg(feature = "cloudflare")]
    #[must_use]
    pub fn cloudflare(mut self, account: crate::CloudflareAccount) -> Self {
        self.cloudflare = Some(account);
        self
    }

    /// Sets the store for uploads, and for the receipts of deployments at Cloudflare. Default: a bucket set with `s3`
    /// (feature `s3`), or else a folder in the data folder.
    #[must_use]
    pub fn blobs(mut self, blobs: Arc<dyn Blobs>) -> Self {
        self.blobs = Some(blobs);
        self
    }

    /// Stores uploads, and the receipts of deployments at Cloudflare, in a bucket of an S3-compatible object store (feature
    /// `s3`), so that any node can run any job: `s3://bucket/prefix?region=eu-central-1`, see
    /// [`S3Config::url`](crate::S3Config::url). The options are in `settings.s3`. A store set with
    /// [`SuiteBuilder::blobs`] takes precedence.
    #[cfg(feature = "s3")]
    #[must_use]
    pub fn s3(mut self, url: impl Into<String>, credentials: core_s3::S3Credentials) -> Self {
        self.s3 = Some((url.into(), credentials));
        self
    }

    /// Sets the reader of uploaded archives. Default: `UnpackArchives` (feature `archives`).
    #[must_use]
    pub fn archives(mut self, archives: Arc<dyn SiteArchives>) -> Self {
        self.archives = Some(archives);
        self
    }

    /// Sets the receiver of event messages (topics such as `platform.status`). Default: the log. No message is lost:
    /// one that the outlet does not accept is retried, after a crash as well.
    #[must_use]
    pub fn outlet(mut self, outlet: Arc<dyn Outlet>) -> Self {
        self.outlet = outlet;
        self
    }

    /// Sets the mailer. Default: files in the folder `outbox` of the data folder. No mail is lost: one that is not
    /// accepted is retried for two days, after a crash as well.
    #[must_use]
    pub fn mailer(mut self, mailer: Arc<dyn Mailer>) -> Self {
        self.mailer = Some(mailer);
        self
    }

    /// Sets the sender of webhooks. Default: HTTP (feature `webhooks`). Without a sender and without the feature every
    /// attempt fails with an error that names the feature. A message that is not accepted is retried for three days, after a
    /// crash as well.
    #[must_use]
    pub fn webhook_sender(mut self, sender: Arc<dyn WebhookSender>) -> Self {
        self.webhook_sender = Some(sender);
        self
    }

    /// Sends mail through an SMTP server (feature `smtp`): `smtp://user:password@host:587` or `smtps://host:465`, see
    /// [`core_smtp::SmtpUrl`]. It requires a sender address, see [`SuiteBuilder::mail_from`]. A mailer set with
    /// [`SuiteBuilder::mailer`] takes precedence.
    #[cfg(feature = "smtp")]
    #[must_use]
    pub fn smtp(mut self, url: impl Into<String>) -> Self {
        self.smtp = Some(url.into());
        self
    }

    /// Sets the sender of mails: `Name <address@example.org>`. Same as `settings.mail.sender`.
    #[must_use]
    pub fn mail_from(mut self, sender: impl Into<String>) -> Self {
        self.settings.mail.sender = sender.into();
        self
    }

    /// Sets the implementation of passkeys. Default: WebAuthn for the host of IAM's URL (feature `webauthn`). Without
    /// an implementation, or if that host is not a domain name, passkeys are unavailable and their routes return an
    /// error.
    #[must_use]
    pub fn passkeys(mut self, passkeys: Arc<dyn Passkeys>) -> Self {
        self.passkeys = Some(passkeys);
        self
    }

    /// Sets the resolver for the DNS records of custom domains. Default: the name servers in `settings.dns` (feature
    /// `dns`). Without a resolver no domain is verified: it stays `pending`, and shows which records it needs.
    #[must_use]
    pub fn dns_resolver(mut self, resolver: Arc<dyn DnsResolver>) -> Self {
        self.dns_resolver = Some(resolver);
        self
    }

    /// Shares rate limits, failed sign-ins and notices with the other nodes through a Redis server (feature `redis`):
    /// `redis://user:password@host:6379/0`, or `rediss://` for TLS. The options are in `settings.redis`. While Redis cannot
    /// be reached, each node counts in its memory. On a store that no other process can use, Redis only counts.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn redis(mut self, url: impl Into<String>) -> Self {
        self.redis = Some(Secret::new(url));
        self
    }

    /// Sets the counter of requests and failed sign-ins. While it fails, requests are counted in the memory of this
    /// process. Default: Redis, or else the memory of this process.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: Arc<dyn RateLimiter>) -> Self {
        self.rate_limiter = Some(limiter);
        self
    }

    /// Sets the channel of notices between the nodes: a session that ends at one node then ends at once at the others.
    /// Default: Redis, or else the Postgres database. With another store there are no notices, and a node detects changes
    /// of others when its caches expire.
    #[must_use]
    pub fn notices(mut self, notices: Arc<dyn Notices>) -> Self {
        self.notices = Some(notices);
        self
    }

    /// Sets the receiver of traces: the spans of requests and jobs. The share of sampled traces is
    /// `settings.traces.ratio`. Default: a collector set with `otlp` (feature `otel`), or else none, and no spans are
    /// created. A host program with an OpenTelemetry pipeline gives its span processor to `ProcessorSink` (feature `otel`).
    #[must_use]
    pub fn span_sink(mut self, sink: Arc<dyn SpanSink>) -> Self {
        self.span_sink = Some(sink);
        self
    }

    /// Exports traces to an OpenTelemetry collector over OTLP (feature `otel`). The limits are in `settings.otlp`, and
    /// replace those of the configuration. A sink set with [`SuiteBuilder::span_sink`] takes precedence.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn otlp(mut self, config: core_otel::OtlpConfig) -> Self {
        self.otlp = Some(config);
        self
    }

    /// Sets the installation's secret. Default: a secret generated once and stored in the data folder. All nodes of an
    /// installation need the same secret.
    #[must_use]
    pub fn secret(mut self, bytes: [u8; 32]) -> Self {
        self.secret = Some(InstallationSecret::new(bytes));
        self
    }

    /// Sets the key that encrypts stored data that must be decrypted later: signing keys, mails, and stored responses
    /// that contain secrets. Default: a key derived from the installation's secret. All nodes of an installation need
    /// the same key.
    #[must_use]
    pub fn master_key(mut self, bytes: [u8; 32]) -> Self {
        self.master_key = Some(MasterKey::new(bytes));
        self
    }

    /// Sets the key of operators and of other services, at least 16 characters. Without it **every request is
    /// accepted** unauthenticated.
    #[must_use]
    pub fn service_key(mut self, key: impl Into<String>) -> Self {
        self.service_key = Some(Secret::new(key));
        self
    }

    /// Sets the public URL of IAM. It determines the cookie's name, and is the origin from which cookies are accepted.
    #[must_use]
    pub fn iam_url(mut self, url: impl Into<String>) -> Self {
        self.iam_url = url.into();
        self
    }

    /// Sets the public URL of the gateway, without a path. Clients such as `core-cli` then look up the URL of IAM at
    /// `/.well-known/oauth-protected-resource` of the gateway (RFC 9728). Default: none, the document does not exist.
    #[must_use]
    pub fn gateway_url(mut self, url: impl Into<String>) -> Self {
        self.gateway_url = Some(url.into());
        self
    }

    /// Sets the public URL of the billing service, without a path. The pages on which customers pay invoices and manage
    /// their plan are below it. Default: none, there are no such pages.
    #[must_use]
    pub fn billing_url(mut self, url: impl Into<String>) -> Self {
        self.billing_url = Some(url.into());
        self
    }

    /// Forwards the requests for a service to another process, at an address such as `http://10.0.0.2:8081`, instead of to
    /// the service in this process. If IAM is remote, the gateway also resolves credentials there. Needs a
    /// [service key](Self::service_key), which IAM must share. Default: every service runs in this process.
    ///
    /// All processes of an installation use the same Postgres database, [secret](Self::secret) and
    /// [URL of IAM](Self::iam_url). A gateway whose services are all remote needs no database. If its store is in memory
    /// or SQLite, it reports the usage of platforms to the remote billing service, and enforces no quotas.
    #[must_use]
    pub fn remote_service(mut self, service: SuiteService, url: impl Into<String>) -> Self {
        self.remote_services.insert(service, url.into());
        self
    }

    /// Sets the port in the addresses of local sites, which must be the port that they are served on.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn site_port(mut self, port: u16) -> Self {
        self.site_port = port;
        self
    }

    /// Makes the local provider wait this long before and after every change, to observe running jobs.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn local_latency(mut self, latency: std::time::Duration) -> Self {
        self.local_latency = latency;
        self
    }

    /// Runs the workers of the local provider with this program, see [`core_local::find_workerd`]. Without it workers
    /// are only stored, and requests to their addresses return a page that explains it.
    #[cfg(feature = "local")]
    #[must_use]
    pub fn workerd(mut self, workerd: core_local::Workerd) -> Self {
        self.workerd = Some(workerd);
        self
    }

    /// Hosts the workers of the local provider in a separate process that this command starts, unless
    /// [`WorkerdOptions::process`](core_local::WorkerdOptions::process) is off. The command calls [`run_worker_host`].
    /// Without a command this process hosts the workers.
    ///
    /// [`run_worker_host`]: crate::run_worker_host
    #[cfg(feature = "local")]
    #[must_use]
    pub fn worker_host(mut self, command: core_local::WorkerHostCommand) -> Self {
        self.worker_host = Some(command);
        self
    }

    /// Sets the API paths of the gateway that need no credential. Default: none.
    #[must_use]
    pub fn public_routes(mut self, routes: Vec<String>) -> Self {
        self.settings.gateway.public_routes = routes;
        self
    }

    /// Sets the web origins that may call the gateway, and from which IAM accepts cookies.
    #[must_use]
    pub fn allowed_origins(mut self, origins: Vec<String>) -> Self {
        self.settings.gateway.allowed_origins = origins;
        self
    }

    /// Sets the proxies in front of the gateway and IAM whose `X-Forwarded-For` is trusted: addresses or ranges such as
    /// `10.0.0.0/8`. Default: none.
    #[must_use]
    pub fn trusted_proxies(mut self, proxies: Vec<String>) -> Self {
        self.settings.gateway.trusted_proxies = proxies;
        self
    }

    /// Registers a job kind of the embedding program, see [`crate::jobs`]. Every process that should run its jobs needs
    /// the kind. A process without it leaves those jobs to others.
    #[must_use]
    pub fn job_kind<K: JobKind>(mut self, kind: K) -> Self {
        self.kinds = self.kinds.and_then(|kinds| kinds.with(kind));
        self
    }

    /// Sets how many jobs this process runs at the same time, on the runtime that the suite is built in. With 0 it only
    /// queues jobs and leaves them to other processes on the same database. Same as `settings.worker.slots`.
    #[must_use]
    pub fn worker_slots(mut self, slots: usize) -> Self {
        self.settings.worker.slots = slots;
        self
    }

    /// Changes any limit or time-out: `.settings(|settings| settings.worker.slots = 8)`.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Returns the clock for use outside of units of work.
    pub(crate) fn clock_or_system(&self) -> Arc<dyn Clock> {
        let clock = self.clock.clone();
        clock.unwrap_or_else(|| Arc::new(SystemClock))
    }
}
