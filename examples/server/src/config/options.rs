//! The command line, and all options that can be set there, in the environment or in the configuration file.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum};
use core_suite::accounting::Day;
use core_suite::plans::PlanVersionName;
use core_suite::{Settings, SuiteService};
use serde::{Deserialize, Serialize};

use crate::service;

/// The command line. Every option can also be set by the environment variable shown.
#[derive(Parser)]
#[command(
    name = "core-server",
    version,
    about = "The Platform Control API Suite as one process.",
    // The descriptions of the options contain the defaults.
    mut_args(|arg| arg.hide_default_value(true))
)]
pub(crate) struct Cli {
    /// The command to run. Without a command the server starts.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// A TOML file with the long option names as keys, with underscores instead of dashes.
    #[arg(long, env = "CORE_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Sets one setting, such as `settings.gateway.session_cache=2s`. May be repeated. `check-config` prints all
    /// settings. In environment variables the dots become two underscores: `CORE_SETTINGS__GATEWAY__SESSION_CACHE`.
    #[arg(long = "set", value_name = "KEY=VALUE", global = true)]
    pub(crate) set: Vec<String>,
    /// The options that set keys of the configuration.
    #[command(flatten)]
    pub(crate) options: Options,
}

/// The commands besides running the server.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Validates the configuration, prints the effective values (secrets only as set) or the first error, and exits. If
    /// there is a database, its plans must not have changed under the same version.
    CheckConfig,
    /// Checks the settings, the database, the clock, the data folder and its disk, mail, infrastructure, the collector of
    /// traces, keys, DNS and other services, and exits. Prints one line per subject, with what to do; the exit status is 1 after a failure.
    /// A server may be running. The command changes no record and no setting: it writes a test object to the bucket for
    /// uploads and a temporary file to the data folder, and removes both.
    Doctor,
    /// Hosts the workers of a running server in a process with limited memory (`settings.workerd.memory`). The server
    /// starts this command itself unless `settings.workerd.process` is `false`; it cannot be started by hand.
    Workers,
    /// Imports users from another installation, and exits. The file contains JSON, one object per line or one array,
    /// with `email` and any of `id`, `name`, `emailVerified`, `image`, `createdAt`, `passwordHash` (Argon2, or scrypt
    /// of better-auth). Existing users are left unchanged. With SQLite, stop the server first.
    ImportUsers {
        /// The file to import; `-` means standard input.
        file: PathBuf,
        /// Report what would be imported, and store nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Writes a backup of all records and of the data folder, and exits. A server may be running. The backup contains the
    /// installation's secret and all personal data: protect it like the database.
    Backup {
        /// The folder to write, which must be new or empty.
        #[arg(long, value_name = "FOLDER")]
        output: PathBuf,
    },
    /// Restores a backup into the database and the data folder of this configuration, verifies both, and exits. They must
    /// be new or empty.
    Restore {
        /// The folder of the backup.
        #[arg(long, value_name = "FOLDER")]
        input: PathBuf,
        /// Continue a restore that ended early. Records that differ from the backup are replaced or deleted.
        #[arg(long)]
        resume: bool,
    },
    /// Copies all records from one database to another, such as from SQLite to Postgres, verifies the copy, and exits. The
    /// destination must be empty. Stop the servers of both databases first, so that no later change is missing.
    Copy {
        /// The database to read: `sqlite:FILE` or `postgres://..`.
        #[arg(long, value_name = "URL")]
        from: String,
        /// The database to write: `sqlite:FILE` or `postgres://..`.
        #[arg(long, value_name = "URL")]
        to: String,
        /// Continue a copy that ended early. Records that differ from the source are replaced or deleted.
        #[arg(long)]
        resume: bool,
    },
    /// Shows how many platforms each cell (`--cells`) has, and whether a cell can be removed, and exits. Nothing is
    /// written.
    Cells,
    /// Moves a platform to another cell (`--cells`), and exits. Servers may be running: the platform stays in use, and its
    /// changes wait for less than two seconds. It takes about a minute longer than the copy. If it ends early, run it again.
    MovePlatform {
        /// The id of the platform.
        #[arg(required_unless_present = "all_of")]
        platform: Option<String>,
        /// Move all platforms of a cell, one after the other, instead of a single one. No server may assign new platforms to
        /// the cell.
        #[arg(long, value_name = "CELL", conflicts_with_all = ["platform", "cancel"])]
        all_of: Option<String>,
        /// The name of the cell to move it to; `home` is the database of the server.
        #[arg(long, value_name = "CELL", required_unless_present = "cancel")]
        to: Option<String>,
        /// The maximum time for which changes of the old cell wait before the switch, in milliseconds: 100 to 4000. If the last
        /// changes need longer, the command tries again [default: 1500].
        #[arg(
            long,
            value_name = "MS",
            default_value = "1500",
            hide_default_value = true,
            value_parser = clap::value_parser!(u64).range(100..=4_000)
        )]
        max_pause: u64,
        /// Cancel a move that has not switched: remove what was copied.
        #[arg(long, conflicts_with = "to")]
        cancel: bool,
    },
    /// Shows or runs the migrations of the database that have not run, and exits. Servers of the last release may be using
    /// a Postgres database. With SQLite, stop the server before `--apply`.
    #[command(group = ArgGroup::new("action").required(true))]
    Migrate {
        /// Shows the migrations, the sizes of the tables that they change, and whether running servers can go on.
        #[arg(long, group = "action")]
        plan: bool,
        /// Runs the migrations. Indexes are built while servers read and write.
        #[arg(long, group = "action")]
        apply: bool,
        /// With `--plan`: also shows the SQL statements.
        #[arg(long, conflicts_with = "apply")]
        sql: bool,
        /// With `--apply`: no server uses the database, so a migration may remove what earlier releases use.
        #[arg(long, conflicts_with = "plan")]
        all_stopped: bool,
    },
    /// Writes the journal of billing, and exits. Each posting is one line, in the order of time, with the columns `date`,
    /// `entry`, `account`, `currency`, `debit`, `credit` and `reference`. Amounts are in minor units, such as cents. One
    /// line `trial_balance` per currency follows, with the sums of debits and credits; without it the export is incomplete.
    /// A server may be running.
    ExportJournal {
        /// The first day, in UTC [default: the day of the first entry].
        #[arg(long, value_name = "YYYY-MM-DD")]
        from: Option<Day>,
        /// The last day, in UTC; its entries are included [default: the day of the last entry].
        #[arg(long, value_name = "YYYY-MM-DD")]
        to: Option<Day>,
        /// The format: CSV with a header, or one JSON object per line [default: csv].
        #[arg(long, default_value = "csv", hide_default_value = true)]
        format: JournalFormat,
        /// The file to write, which is replaced if it exists [default: standard output].
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Verifies the journal of billing, and exits. Every entry and the whole journal must balance. The open invoices, the
    /// balance and the credits of every customer must follow from the journal, and invoice numbers must have no gap. Prints
    /// every difference with the ids of its records; the exit status is then 1. A server may be running.
    VerifyJournal,
    /// Verifies an archive of the audit log without a database, and exits: its signature, all hashes, and that no entry is
    /// missing. Prints its month, its digest and the digest of the previous archive; the exit status is 1 if it is not valid.
    VerifyArchive {
        /// The archive: a file `audit-archive-YYYY-MM-..`.
        file: PathBuf,
        /// The file with the public keys of the installation: a response of `GET /api/v1/audit/checkpoints`.
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
    },
    /// Moves all subscriptions of one version of a plan to another, such as `growth:1 growth:2`, and exits. Each moves at
    /// its first boundary 30 days or more after a mail to its customer, which the server sends. Safe to repeat. With SQLite,
    /// stop the server first.
    MigratePlan {
        /// The version that subscriptions have now: a tier and a number.
        from: PlanVersionName,
        /// The version that they move to.
        to: PlanVersionName,
    },
}

/// The format of an exported journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JournalFormat {
    /// Values separated by commas, with a header (RFC 4180).
    Csv,
    /// One JSON object per line.
    Jsonl,
}

/// Every option. An option without a default is `None` if it is not set.
#[derive(Args, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// The folder for all data of the server [default: ./core-data].
    #[arg(long, env = "CORE_DATA", default_value = "core-data", global = true)]
    pub(crate) data: PathBuf,
    /// The database: `sqlite:FILE`, `postgres://..` or `memory:` [default: core.sqlite in the data folder; `memory:` if only
    /// the gateway runs and every other service has a URL].
    #[arg(long, env = "DATABASE_URL", global = true, hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// A file that contains the database URL.
    #[arg(long, env = "DATABASE_URL_FILE", global = true)]
    pub(crate) database_url_file: Option<PathBuf>,
    /// The URL of the Postgres database without a pooler. Set it if the database URL leads to PgBouncer or another pooler in
    /// transaction mode. Migrations, notices between nodes and backups use this URL [default: none, the database URL leads to
    /// the server itself].
    #[arg(
        long,
        env = "DATABASE_DIRECT_URL",
        global = true,
        hide_env_values = true
    )]
    pub(crate) database_direct_url: Option<String>,
    /// A file that contains the direct URL of the database.
    #[arg(long, env = "DATABASE_DIRECT_URL_FILE", global = true)]
    pub(crate) database_direct_url_file: Option<PathBuf>,
    /// The URL of standbys of the Postgres database, from which lists are read. A list may then lack commits of the last 2
    /// seconds (`settings.pool.postgres_max_staleness`), also those of its caller [default: none, lists read the primary].
    #[arg(
        long,
        env = "DATABASE_REPLICA_URL",
        global = true,
        hide_env_values = true
    )]
    pub(crate) database_replica_url: Option<String>,
    /// A file that contains the URL of the standbys.
    #[arg(long, env = "DATABASE_REPLICA_URL_FILE", global = true)]
    pub(crate) database_replica_url_file: Option<PathBuf>,
    /// A TOML file that names further Postgres databases, the cells, over which platforms are spread. All processes of the
    /// installation have the same file. The database URL is that of the home cell [default: none, one database has all
    /// records].
    #[arg(long, env = "CORE_CELLS", global = true, value_name = "FILE")]
    pub(crate) cells: Option<PathBuf>,
    /// The Redis server through which several nodes share rate limits and notices: `redis://user:password@host:6379/0`, or
    /// `rediss://` for TLS [default: none, each node counts in its memory].
    #[arg(long, env = "REDIS_URL", global = true, hide_env_values = true)]
    pub(crate) redis_url: Option<String>,
    /// A file that contains the URL of the Redis server.
    #[arg(long, env = "REDIS_URL_FILE", global = true)]
    pub(crate) redis_url_file: Option<PathBuf>,
    /// The bucket for uploads, which nodes share: `s3://bucket/prefix?region=eu-central-1`, and `&endpoint=https://host:port`
    /// if it is not at AWS. `&style=virtual` or `path` chooses the place of its name in URLs [default: none, uploads are
    /// stored in the data folder].
    #[arg(long, env = "BLOBS_URL", global = true)]
    pub(crate) blobs_url: Option<String>,
    /// The id of the access key for the bucket [default: `AWS_ACCESS_KEY_ID`, or else the role of this machine at AWS].
    #[arg(long, env = "S3_ACCESS_KEY_ID", global = true, hide_env_values = true)]
    pub(crate) s3_access_key_id: Option<String>,
    /// A file that contains the id of the access key for the bucket.
    #[arg(long, env = "S3_ACCESS_KEY_ID_FILE", global = true)]
    pub(crate) s3_access_key_id_file: Option<PathBuf>,
    /// The secret of the access key for the bucket [default: `AWS_SECRET_ACCESS_KEY`].
    #[arg(
        long,
        env = "S3_SECRET_ACCESS_KEY",
        global = true,
        hide_env_values = true
    )]
    pub(crate) s3_secret_access_key: Option<String>,
    /// A file that contains the secret of the access key for the bucket.
    #[arg(long, env = "S3_SECRET_ACCESS_KEY_FILE", global = true)]
    pub(crate) s3_secret_access_key_file: Option<PathBuf>,
    /// The service key of the gateway, at least 16 characters. Without it every request is accepted unauthenticated,
    /// and only loopback addresses can be bound.
    #[arg(long, env = "AUTH_API_KEY", global = true, hide_env_values = true)]
    pub(crate) auth_api_key: Option<String>,
    /// A file that contains the service key.
    #[arg(long, env = "AUTH_API_KEY_FILE", global = true)]
    pub(crate) auth_api_key_file: Option<PathBuf>,
    /// The installation's secret, from which the keys for session cookies, list cursors and the audit log are derived:
    /// 64 hexadecimal digits, the same on every node [default: generated once and stored in the data folder].
    #[arg(long, env = "CORE_SECRET", global = true, hide_env_values = true)]
    pub(crate) secret: Option<String>,
    /// A file that contains the installation's secret.
    #[arg(long, env = "CORE_SECRET_FILE", global = true)]
    pub(crate) secret_file: Option<PathBuf>,
    /// The key that encrypts stored secrets, such as signing keys: 32 bytes as 64 hexadecimal digits or as base64, the
    /// same on every node [default: derived from the installation's secret].
    #[arg(long, env = "CORE_MASTER_KEY", global = true, hide_env_values = true)]
    pub(crate) master_key: Option<String>,
    /// A file that contains the master key.
    #[arg(long, env = "CORE_MASTER_KEY_FILE", global = true)]
    pub(crate) master_key_file: Option<PathBuf>,
    /// The IP address to listen on [default: 127.0.0.1].
    #[arg(long, env = "CORE_BIND", default_value = "127.0.0.1", global = true)]
    pub(crate) bind: IpAddr,
    /// The IP address on which metrics are served. They need no credential, so it must be an address that only the
    /// scraper reaches. `bind` does not change it [default: 127.0.0.1].
    #[arg(
        long,
        env = "CORE_METRICS_BIND",
        default_value = "127.0.0.1",
        global = true
    )]
    pub(crate) metrics_bind: IpAddr,
    /// The gateway's port. The services use the ports after it, metrics the port nine above it, and sites the port ten
    /// above it. 0 means free ports [default: 8080].
    #[arg(long, env = "CORE_BASE_PORT", default_value = "8080", global = true)]
    pub(crate) base_port: u16,
    /// The services to run, separated by commas [default: all].
    #[arg(
        long,
        env = "CORE_SERVICES",
        value_parser = service::parser(),
        value_delimiter = ',',
        default_values_t = SuiteService::ALL.iter().copied(),
        global = true
    )]
    pub(crate) services: Vec<SuiteService>,
    /// The URL of IAM for the gateway, `http://host:port`. The gateway then resolves credentials there, and forwards the
    /// requests for IAM to it. It is also the default of `iam_public_url`. Needs a service key [default: IAM in this
    /// process].
    #[arg(long, env = "IAM_URL", global = true)]
    pub(crate) iam_url: Option<String>,
    /// The URL to which the gateway forwards the requests for the registry [default: the registry in this process].
    #[arg(long, env = "REGISTRY_URL", global = true)]
    pub(crate) registry_url: Option<String>,
    /// The URL to which the gateway forwards the requests for provisioning [default: provisioning in this process].
    #[arg(long, env = "PROVISIONING_URL", global = true)]
    pub(crate) provisioning_url: Option<String>,
    /// The URL to which the gateway forwards the requests for the CLI service [default: the service in this process].
    #[arg(long, env = "CLI_URL", global = true)]
    pub(crate) cli_url: Option<String>,
    /// The URL to which the gateway forwards the requests for billing [default: billing in this process].
    #[arg(long, env = "BILLING_URL", global = true)]
    pub(crate) billing_url: Option<String>,
    /// The URL to which the gateway forwards the requests for the stack registry [default: the stack registry in this
    /// process].
    #[arg(long, env = "STACK_REGISTRY_URL", global = true)]
    pub(crate) stack_registry_url: Option<String>,
    /// Routes of the gateway that need no credential, each as `METHOD /path` [default: none].
    #[arg(long, env = "CORE_PUBLIC_ROUTES", value_delimiter = ',', global = true)]
    pub(crate) public_routes: Vec<String>,
    /// Web origins that get CORS headers from the gateway, and from which IAM accepts cookies [default: none].
    #[arg(
        long,
        env = "CORE_ALLOWED_ORIGINS",
        value_delimiter = ',',
        global = true
    )]
    pub(crate) allowed_origins: Vec<String>,
    /// Proxies in front of the gateway and IAM, as addresses or ranges. Their X-Forwarded-For is trusted, and the limit
    /// of connections per client does not apply to them [default: none].
    #[arg(
        long,
        env = "CORE_TRUSTED_PROXIES",
        value_delimiter = ',',
        global = true
    )]
    pub(crate) trusted_proxies: Vec<String>,
    /// The URL at which users reach IAM, the same on every node. With https, cookies are sent over https only. Required if
    /// `bind` is not a loopback address [default: `iam_url`, or else the address IAM listens on].
    #[arg(long, env = "CORE_IAM_PUBLIC_URL", global = true)]
    pub(crate) iam_public_url: Option<String>,
    /// The URL at which clients reach the gateway. `core-cli login` finds IAM with it [default: the address that the
    /// gateway listens on if that is a loopback address, otherwise none].
    #[arg(long, env = "CORE_GATEWAY_PUBLIC_URL", global = true)]
    pub(crate) gateway_public_url: Option<String>,
    /// The URL at which customers reach the pages of billing, on which they pay invoices and manage their plan [default:
    /// the address that billing listens on if that is a loopback address, otherwise none].
    #[arg(long, env = "CORE_BILLING_PUBLIC_URL", global = true)]
    pub(crate) billing_public_url: Option<String>,
    /// The server that sends mail: `smtp://user:password@host:587` (STARTTLS; `?tls=none` for a server on this machine)
    /// or `smtps://user:password@host:465`. `?ca=FILE` replaces the system's root certificates [default: none, mails
    /// are written to the folder outbox of the data folder].
    #[arg(long, env = "SMTP_URL", global = true, hide_env_values = true)]
    pub(crate) smtp_url: Option<String>,
    /// A file that contains the URL of the mail server.
    #[arg(long, env = "SMTP_URL_FILE", global = true)]
    pub(crate) smtp_url_file: Option<PathBuf>,
    /// The sender address of mails, `Name <address@example.org>`. Required with a mail server.
    #[arg(long, env = "MAIL_FROM", global = true)]
    pub(crate) mail_from: Option<String>,
    /// The base URL of an OpenTelemetry collector that receives traces over OTLP (HTTP with protobuf), such as
    /// `http://127.0.0.1:4318`; they are posted to `/v1/traces` below it [default: none, no traces are exported].
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", global = true)]
    pub(crate) otlp_endpoint: Option<String>,
    /// The whole URL to which traces are posted, instead of one below `otlp_endpoint` [default: none].
    #[arg(long, env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", global = true)]
    pub(crate) otlp_traces_endpoint: Option<String>,
    /// Headers of the requests to the collector, such as a credential: `name=value`, separated by commas. Values are
    /// percent-encoded [default: none].
    #[arg(
        long,
        env = "OTEL_EXPORTER_OTLP_HEADERS",
        global = true,
        hide_env_values = true
    )]
    pub(crate) otlp_headers: Option<String>,
    /// A file that contains the headers for the collector.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS_FILE", global = true)]
    pub(crate) otlp_headers_file: Option<PathBuf>,
    /// A PEM file with the root certificates that the collector's certificate must come from [default: those of the
    /// system].
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", global = true)]
    pub(crate) otlp_certificate: Option<PathBuf>,
    /// The name of this server in traces [default: core-server].
    #[arg(long, env = "OTEL_SERVICE_NAME", global = true)]
    pub(crate) otel_service_name: Option<String>,
    /// The share of the traces that are exported, from 0 to 1, the same on every node [default: 1].
    #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", global = true)]
    pub(crate) trace_ratio: Option<f64>,
    /// A token for Cloudflare's API. With it, infrastructure is created at Cloudflare instead of on this machine.
    #[arg(
        long,
        env = "CLOUDFLARE_API_TOKEN",
        global = true,
        hide_env_values = true
    )]
    pub(crate) cloudflare_api_token: Option<String>,
    /// A file that contains the token.
    #[arg(long, env = "CLOUDFLARE_API_TOKEN_FILE", global = true)]
    pub(crate) cloudflare_api_token_file: Option<PathBuf>,
    /// The id of the Cloudflare account. Required with the token.
    #[arg(long, env = "CLOUDFLARE_ACCOUNT_ID", global = true)]
    pub(crate) cloudflare_account_id: Option<String>,
    /// A file that contains the account id.
    #[arg(long, env = "CLOUDFLARE_ACCOUNT_ID_FILE", global = true)]
    pub(crate) cloudflare_account_id_file: Option<PathBuf>,
    /// The base URL of Cloudflare's API [default: its public URL].
    #[arg(long, env = "CLOUDFLARE_API_BASE_URL", global = true)]
    pub(crate) cloudflare_api_base_url: Option<String>,
    /// A file that contains the base URL.
    #[arg(long, env = "CLOUDFLARE_API_BASE_URL_FILE", global = true)]
    pub(crate) cloudflare_api_base_url_file: Option<PathBuf>,
    /// The secret key of a Stripe account. With it, invoices are charged at Stripe. Without it, payments are simulated.
    #[arg(long, env = "STRIPE_SECRET_KEY", global = true, hide_env_values = true)]
    pub(crate) stripe_secret_key: Option<String>,
    /// A file that contains the secret key.
    #[arg(long, env = "STRIPE_SECRET_KEY_FILE", global = true)]
    pub(crate) stripe_secret_key_file: Option<PathBuf>,
    /// The secret of Stripe's webhooks. Two, separated by a comma, are valid while one is replaced.
    #[arg(
        long,
        env = "STRIPE_WEBHOOK_SECRET",
        global = true,
        hide_env_values = true
    )]
    pub(crate) stripe_webhook_secret: Option<String>,
    /// A file that contains the secret of the webhooks.
    #[arg(long, env = "STRIPE_WEBHOOK_SECRET_FILE", global = true)]
    pub(crate) stripe_webhook_secret_file: Option<PathBuf>,
    /// The key with which browsers send card data to Stripe.
    #[arg(long, env = "STRIPE_PUBLISHABLE_KEY", global = true)]
    pub(crate) stripe_publishable_key: Option<String>,
    /// The base URL of Stripe's API [default: its public URL].
    #[arg(long, env = "STRIPE_API_BASE_URL", global = true)]
    pub(crate) stripe_api_base_url: Option<String>,
    /// The time that the local provider waits before and after each change, in milliseconds, to observe running jobs
    /// [default: 0].
    #[arg(
        long,
        env = "CORE_LOCAL_LATENCY_MS",
        default_value = "0",
        global = true
    )]
    pub(crate) local_latency_ms: u64,
    /// The program `workerd`, which runs workers [default: the one in PATH, or in node_modules/.bin next to the data
    /// folder; without one workers are stored but do not run].
    #[arg(long, env = "WORKERD_BIN", global = true)]
    pub(crate) workerd: Option<PathBuf>,
    /// Allow addresses that are not loopback without a service key [default: false].
    #[arg(long, env = "ALLOW_UNAUTHENTICATED", action = ArgAction::Set, default_value = "false", global = true)]
    pub(crate) allow_unauthenticated: bool,
    /// Accept test cards as payment, on an address that is not loopback. The money is simulated [default: false].
    #[arg(long, env = "ALLOW_SIMULATED_PAYMENTS", action = ArgAction::Set, default_value = "false", global = true)]
    pub(crate) allow_simulated_payments: bool,
    /// Refuse stacks, domains and entities above the limits of the plan, and requests above those that a trial or the
    /// tier `free` includes [default: false].
    #[arg(long, env = "BILLING_ENFORCE_QUOTAS", action = ArgAction::Set, default_value = "false", global = true)]
    pub(crate) billing_enforce_quotas: bool,
    /// The hosts that the portal of billing may lead customers back to, separated by commas [default: every host].
    #[arg(
        long,
        env = "PORTAL_RETURN_HOSTS",
        value_delimiter = ',',
        global = true
    )]
    pub(crate) portal_return_hosts: Vec<String>,
    /// The log filter in the syntax of RUST_LOG: `info` or `warn,core_suite=debug` [default: info].
    #[arg(long, env = "RUST_LOG", default_value = "info", global = true)]
    pub(crate) log_level: String,
    /// The format of log lines [default: json].
    #[arg(long, env = "CORE_LOG_FORM", default_value = "json", global = true)]
    pub(crate) log_form: LogForm,
    /// Drop and count log lines that cannot be written in time, instead of delaying requests [default: false].
    #[arg(long, env = "CORE_LOG_LOSSY", action = ArgAction::Set, default_value = "false", global = true)]
    pub(crate) log_lossy: bool,
    /// Every limit and time-out. They have no flags of their own; set them with `--set`.
    #[arg(skip)]
    pub(crate) settings: Settings,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogForm {
    /// One JSON object per line, for log collectors.
    Json,
    /// Plain text, for people.
    Text,
}

impl Options {
    /// Returns the URLs of the services that run in other processes.
    pub(crate) fn remote_services(&self) -> impl Iterator<Item = (SuiteService, &str)> {
        let urls = self.service_urls().into_iter();
        urls.filter_map(|(service, _, url)| Some((service, url?)))
    }

    /// Returns the name of the option with the URL of a service that this process needs and does not have: if it runs the
    /// gateway, and other services run in other processes.
    pub(crate) fn missing_service_url(&self) -> Option<&'static str> {
        let runs = |service| self.services.contains(&service);
        if !runs(SuiteService::Gateway) || self.remote_services().next().is_none() {
            return None;
        }
        let urls = self.service_urls().into_iter();
        let mut missing = urls.filter(|(service, _, url)| url.is_none() && !runs(*service));
        missing.next().map(|(_, option, _)| option)
    }

    /// Returns the options with the URL of each service.
    fn service_urls(&self) -> [(SuiteService, &'static str, Option<&str>); 6] {
        let urls = [
            (SuiteService::Iam, "iam_url", &self.iam_url),
            (SuiteService::Registry, "registry_url", &self.registry_url),
            (
                SuiteService::Provisioning,
                "provisioning_url",
                &self.provisioning_url,
            ),
            (SuiteService::Cli, "cli_url", &self.cli_url),
            (SuiteService::Billing, "billing_url", &self.billing_url),
            (
                SuiteService::Stacks,
                "stack_registry_url",
                &self.stack_registry_url,
            ),
        ];
        urls.map(|(service, option, url)| (service, option, url.as_deref()))
    }

    /// Returns whether this process runs the gateway alone, and every other service runs elsewhere.
    pub(crate) fn is_gateway_only(&self) -> bool {
        let others = SuiteService::ALL.len() - 1;
        self.services == [SuiteService::Gateway] && self.remote_services().count() == others
    }
}
