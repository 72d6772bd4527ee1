//! The server's configuration. Flags override environment variables, which override the TOML file, which overrides the
//! defaults. Unknown keys are refused.

mod cloudflare;
mod contradictions;
mod error;
mod options;
mod sources;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use core_suite::{CloudflareAccount, MailOptions, ServiceKey, Settings, SuiteService, Workerd};
use tracing_subscriber::EnvFilter;

pub(crate) use self::error::ConfigError;
use self::error::wrong;
pub(crate) use self::options::{Cli, Command, LogForm, Options};
pub(crate) use self::values::Database;
use self::values::{
    database, mail_server, master_key, public_url, secret, sender, thirty_two_bytes, workerd,
};
use crate::service::port_offset;

/// The complete, validated configuration.
#[derive(Clone)]
pub(crate) struct Config {
    /// The data folder.
    pub(crate) data: PathBuf,
    /// The database that stores the records.
    pub(crate) database: Database,
    /// The service key; `None` accepts every request unauthenticated.
    pub(crate) auth_api_key: Option<String>,
    /// The installation's secret; `None` means the secret stored in the data folder.
    pub(crate) secret: Option<[u8; 32]>,
    /// The key that encrypts stored secrets; `None` means a key derived from the installation's secret.
    pub(crate) master_key: Option<[u8; 32]>,
    /// The address to listen on.
    pub(crate) bind: IpAddr,
    /// The gateway's port; 0 means free ports for all listeners.
    pub(crate) base_port: u16,
    /// The services that this process runs.
    pub(crate) services: BTreeSet<SuiteService>,
    /// Routes of the gateway that need no credential.
    pub(crate) public_routes: Vec<String>,
    /// Web origins that may call the gateway, and from which IAM accepts cookies.
    pub(crate) allowed_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub(crate) trusted_proxies: Vec<String>,
    /// The URL at which users reach IAM, if it differs from the listener's address.
    pub(crate) iam_public_url: Option<String>,
    /// The URL of the mail server; `None` writes mails into the outbox folder.
    pub(crate) smtp_url: Option<String>,
    /// The sender address of mails; `None` means the one in the settings.
    pub(crate) mail_from: Option<String>,
    /// The account in which infrastructure is created; `None` means this machine.
    pub(crate) cloudflare: Option<CloudflareAccount>,
    /// How long the local provider waits before and after each change.
    pub(crate) local_latency: Duration,
    /// The program that runs workers; `None` if workers are only stored.
    pub(crate) workerd: Option<Workerd>,
    /// The log filter, in the syntax of `RUST_LOG`.
    pub(crate) log_level: String,
    /// The format of log lines.
    pub(crate) log_form: LogForm,
    /// True if log lines that cannot be written in time are dropped.
    pub(crate) log_lossy: bool,
    /// Every limit and time-out.
    pub(crate) settings: Settings,
    /// The effective configuration as TOML: file, environment and flags together. Secrets appear only as set.
    pub(crate) effective: String,
    /// Options that contradict each other or have no effect, as sentences. The suite finds those among the settings.
    pub(crate) contradictions: Vec<String>,
}

// Keys, the secret and the URLs of the database and the mail server must not appear in logs.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("data", &self.data)
            .field("bind", &self.bind)
            .field("base_port", &self.base_port)
            .field("services", &self.services)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Merges flags, environment and file, and validates the result.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid option.
    pub(crate) fn load(
        cli: &Cli,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let environment: Vec<_> = environment.into_iter().collect();
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let search_path = path.map(|(_, folders)| folders.clone());
        let sources = sources::merged(cli, environment)?;
        let options: Options = sources.extract().map_err(Box::new)?;
        Self::check(options, sources::shown(&sources)?, search_path.as_deref())
    }

    fn check(
        options: Options,
        effective: String,
        search_path: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let cloudflare = cloudflare::account(&options)?;
        let contradictions = contradictions::find(&options, cloudflare.is_some());
        let data = said("data", options.data)?;
        let workerd = workerd(options.workerd.as_deref(), search_path, &data)?;
        let url = secret(
            "database_url",
            options.database_url,
            options.database_url_file.as_deref(),
        )?;
        let installation = secret("secret", options.secret, options.secret_file.as_deref())?;
        let at_rest = secret(
            "master_key",
            options.master_key,
            options.master_key_file.as_deref(),
        )?;
        let auth_api_key = secret(
            "auth_api_key",
            options.auth_api_key,
            options.auth_api_key_file.as_deref(),
        )?;
        if let Some(key) = &auth_api_key {
            ServiceKey::new(key).map_err(|problem| wrong("auth_api_key", problem.to_string()))?;
        }
        let bind = said("bind", options.bind)?;
        let open = options.allow_unauthenticated == Some(true) || bind.is_loopback();
        if auth_api_key.is_none() && !open {
            return Err(wrong(
                "auth_api_key",
                "is required to bind an address that is not loopback",
            ));
        }
        let iam_public_url = options.iam_public_url.map(public_url).transpose()?;
        if iam_public_url.is_none() && !bind.is_loopback() {
            return Err(wrong(
                "iam_public_url",
                format!(
                    "is required to bind {bind}: set --iam-public-url (CORE_IAM_PUBLIC_URL) to the address at which people and \
                     services reach IAM, such as https://iam.example.org"
                ),
            ));
        }
        let base_port = said("base_port", options.base_port)?;
        if base_port > u16::MAX - 10 {
            return Err(wrong(
                "base_port",
                "must be at most 65525: the services use the ports above it",
            ));
        }
        let services = BTreeSet::from_iter(said("services", options.services)?);
        if services.is_empty() {
            return Err(wrong("services", "must name at least one service"));
        }
        if let Some(other) = services.iter().find(|name| port_offset(**name).is_none()) {
            return Err(wrong(
                "services",
                format!("this server has no service {other}"),
            ));
        }
        let log_level = said("log_level", options.log_level)?;
        EnvFilter::try_new(&log_level)
            .map_err(|problem| wrong("log_level", problem.to_string()))?;
        options.settings.check().map_err(ConfigError::Setting)?;
        let smtp_url = secret(
            "smtp_url",
            options.smtp_url,
            options.smtp_url_file.as_deref(),
        )?;
        let mail_from = options.mail_from.map(sender).transpose()?;
        if let Some(url) = &smtp_url {
            mail_server(url)?;
            if mail_from.is_none() && options.settings.mail.sender == MailOptions::default().sender
            {
                return Err(wrong("mail_from", "is required with a mail server"));
            }
        }
        Ok(Self {
            contradictions,
            database: database(url.as_deref(), &data)?,
            data,
            auth_api_key,
            secret: installation.as_deref().map(thirty_two_bytes).transpose()?,
            master_key: at_rest.as_deref().map(master_key).transpose()?,
            bind,
            base_port,
            services,
            public_routes: options.public_routes.unwrap_or_default(),
            allowed_origins: options.allowed_origins.unwrap_or_default(),
            trusted_proxies: options.trusted_proxies.unwrap_or_default(),
            iam_public_url,
            smtp_url,
            mail_from,
            cloudflare,
            local_latency: Duration::from_millis(options.local_latency_ms.unwrap_or_default()),
            workerd,
            log_level,
            log_form: said("log_form", options.log_form)?,
            log_lossy: options.log_lossy.unwrap_or_default(),
            settings: options.settings,
            effective,
        })
    }
}

/// Returns the value of an option that has a default.
fn said<T>(option: &'static str, value: Option<T>) -> Result<T, ConfigError> {
    value.ok_or_else(|| wrong(option, "must have a value"))
}
