//! The command line, and everything that can be said there, in the environment or in the file.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use core_suite::Settings;
use serde::{Deserialize, Serialize};

use crate::service::ServiceName;

/// The command line; every option also stands in the environment under the name shown.
#[derive(Parser)]
#[command(
    name = "core-server",
    version,
    about = "The Platform Control API Suite as one process."
)]
pub(crate) struct Cli {
    /// What to do; without a command the server runs.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// A TOML file with the same keys as the long options, dashes as underscores.
    #[arg(long, env = "CORE_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Sets one of the many settings, `settings.gateway.session_cache=2s`; may be repeated. `check-config` shows all of them. In the
    /// environment the dots are two underscores: `CORE_SETTINGS__GATEWAY__SESSION_CACHE`.
    #[arg(long = "set", value_name = "KEY=VALUE", global = true)]
    pub(crate) set: Vec<String>,
    /// The options themselves.
    #[command(flatten)]
    pub(crate) options: Options,
}

/// What the binary can do besides running.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Reads the configuration, shows what holds (secrets only as set) or says what is wrong with it, and ends.
    CheckConfig,
    /// Hosts the workers of a running server in a process with limited memory (`settings.workerd.memory`). The server starts
    /// this command itself unless `settings.workerd.process` is `false`; it cannot be started by hand.
    Workers,
    /// Takes people over from another installation, and ends: JSON, an object a line or all in one array, with `email` and
    /// any of `id`, `name`, `emailVerified`, `image`, `createdAt`, `passwordHash` (Argon2, or scrypt of better-auth). Who is
    /// there already stays as they are. With SQLite, stop the server first.
    ImportUsers {
        /// The file; `-` for standard input.
        file: PathBuf,
        /// Tell what would be done, and store nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// Every option, unset where nothing was said.
#[derive(Clone, Default, Deserialize, Parser, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    /// Where everything is kept [default: ./core-data].
    #[arg(long, env = "CORE_DATA", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<PathBuf>,
    /// `sqlite:FILE`, `postgres://..` or `memory:` [default: SQLite in the data folder].
    #[arg(long, env = "DATABASE_URL", global = true, hide_env_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database_url: Option<String>,
    /// A file that holds the database URL.
    #[arg(long, env = "DATABASE_URL_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) database_url_file: Option<PathBuf>,
    /// The service key of the gateway, 16 characters at least. Without it every request passes unauthenticated: loopback only.
    #[arg(long, env = "AUTH_API_KEY", global = true, hide_env_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth_api_key: Option<String>,
    /// A file that holds the service key.
    #[arg(long, env = "AUTH_API_KEY_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth_api_key_file: Option<PathBuf>,
    /// What sessions and cursors are encrypted with: 64 hexadecimal digits, the same on every node
    /// [default: generated once and kept in the data folder].
    #[arg(long, env = "CORE_SECRET", global = true, hide_env_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
    /// A file that holds that secret.
    #[arg(long, env = "CORE_SECRET_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret_file: Option<PathBuf>,
    /// What is stored encrypted is encrypted with, signing keys for one: 32 bytes as 64 hexadecimal digits or as base64, the
    /// same on every node [default: derived from the secret].
    #[arg(long, env = "CORE_MASTER_KEY", global = true, hide_env_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) master_key: Option<String>,
    /// A file that holds that key.
    #[arg(long, env = "CORE_MASTER_KEY_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) master_key_file: Option<PathBuf>,
    /// The address to listen on [default: 127.0.0.1].
    #[arg(long, env = "CORE_BIND", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bind: Option<IpAddr>,
    /// The gateway's port; the services follow it, sites are ten above. 0 takes free ports [default: 8080].
    #[arg(long, env = "CORE_BASE_PORT", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_port: Option<u16>,
    /// Which services to run [default: all].
    #[arg(long, env = "CORE_SERVICES", value_delimiter = ',', global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) services: Option<Vec<ServiceName>>,
    /// Routes of the gateway that need no credential, `METHOD /path` each [default: none].
    #[arg(long, env = "CORE_PUBLIC_ROUTES", value_delimiter = ',', global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_routes: Option<Vec<String>>,
    /// Web origins the gateway answers with CORS headers, and IAM trusts with cookies [default: none].
    #[arg(
        long,
        env = "CORE_ALLOWED_ORIGINS",
        value_delimiter = ',',
        global = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_origins: Option<Vec<String>>,
    /// Proxies before the gateway and IAM whose X-Forwarded-For is believed, and whose connections are not limited for each
    /// address; addresses or ranges [default: none].
    #[arg(
        long,
        env = "CORE_TRUSTED_PROXIES",
        value_delimiter = ',',
        global = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trusted_proxies: Option<Vec<String>>,
    /// The address people reach IAM at; https binds its cookies to https; needed with a `bind` address that is not loopback
    /// [default: the address it listens on].
    #[arg(long, env = "CORE_IAM_PUBLIC_URL", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iam_public_url: Option<String>,
    /// The server that sends mail, `smtp://user:password@host:587` (STARTTLS; `?tls=none` for one on this machine) or
    /// `smtps://user:password@host:465`; `?ca=FILE` names whom to trust instead of whom the system trusts [default: none,
    /// mails are files in the folder outbox of the data folder].
    #[arg(long, env = "SMTP_URL", global = true, hide_env_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) smtp_url: Option<String>,
    /// A file that holds the URL of the mail server.
    #[arg(long, env = "SMTP_URL_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) smtp_url_file: Option<PathBuf>,
    /// Who mails come from, `Name <address@example.org>`; needed with a mail server.
    #[arg(long, env = "MAIL_FROM", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mail_from: Option<String>,
    /// A token of Cloudflare's API: infrastructure is made at Cloudflare then, in place of on this machine.
    #[arg(
        long,
        env = "CLOUDFLARE_API_TOKEN",
        global = true,
        hide_env_values = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cloudflare_api_token: Option<String>,
    /// A file that holds that token.
    #[arg(long, env = "CLOUDFLARE_API_TOKEN_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cloudflare_api_token_file: Option<PathBuf>,
    /// The id of the account at Cloudflare; needed with the token.
    #[arg(long, env = "CLOUDFLARE_ACCOUNT_ID", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cloudflare_account_id: Option<String>,
    /// A file that holds that id.
    #[arg(long, env = "CLOUDFLARE_ACCOUNT_ID_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cloudflare_account_id_file: Option<PathBuf>,
    /// Where Cloudflare's API is, when not at its public address.
    #[arg(long, env = "CLOUDFLARE_API_BASE_URL", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cloudflare_api_base_url: Option<String>,
    /// A file that holds that address.
    #[arg(long, env = "CLOUDFLARE_API_BASE_URL_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cloudflare_api_base_url_file: Option<PathBuf>,
    /// Milliseconds the local provider waits before and after each change, to watch jobs at work [default: 0].
    #[arg(long, env = "CORE_LOCAL_LATENCY_MS", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) local_latency_ms: Option<u64>,
    /// The program that runs workers, `workerd` [default: the one of PATH, else of node_modules/.bin beside the data folder;
    /// without one workers are stored and do not run].
    #[arg(long, env = "WORKERD_BIN", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workerd: Option<PathBuf>,
    /// Listen beyond loopback although no service key is set.
    #[arg(long, env = "ALLOW_UNAUTHENTICATED", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow_unauthenticated: Option<bool>,
    /// What is logged, in the words of RUST_LOG: `info` or `warn,core_suite=debug` [default: info].
    #[arg(long, env = "RUST_LOG", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_level: Option<String>,
    /// How it is logged [default: json].
    #[arg(long, env = "CORE_LOG_FORM", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_form: Option<LogForm>,
    /// Drop and count lines of the log that cannot be written in time, instead of keeping requests waiting [default: false].
    #[arg(long, env = "CORE_LOG_LOSSY", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_lossy: Option<bool>,
    /// Every limit and time-out. Too many for flags of their own: they are set with `--set`.
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub(crate) settings: Settings,
}

impl Options {
    /// What holds where nothing is said.
    pub(crate) fn defaults() -> Self {
        Self {
            data: Some(PathBuf::from("core-data")),
            bind: Some(IpAddr::from([127, 0, 0, 1])),
            base_port: Some(8080),
            services: Some(ServiceName::value_variants().to_vec()),
            public_routes: Some(Vec::new()),
            allowed_origins: Some(Vec::new()),
            trusted_proxies: Some(Vec::new()),
            local_latency_ms: Some(0),
            allow_unauthenticated: Some(false),
            log_level: Some("info".to_owned()),
            log_form: Some(LogForm::Json),
            log_lossy: Some(false),
            ..Self::default()
        }
    }
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogForm {
    /// One JSON object, for collectors.
    Json,
    /// Words, for people.
    Text,
}
