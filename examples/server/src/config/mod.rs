//! What the server is told: flags over environment over TOML file over defaults. Unknown keys are refused.

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

use core_suite::{CloudflareAccount, MailOptions, ServiceKey, Settings, Workerd};
use tracing_subscriber::EnvFilter;

pub(crate) use self::error::ConfigError;
use self::error::wrong;
pub(crate) use self::options::{Cli, Command, LogForm, Options};
pub(crate) use self::values::Database;
use self::values::{
    database, mail_server, master_key, public_url, secret, sender, thirty_two_bytes, workerd,
};
use crate::service::ServiceName;

/// The whole configuration, checked.
#[derive(Clone)]
pub(crate) struct Config {
    /// Where files are kept.
    pub(crate) data: PathBuf,
    /// Where records are kept.
    pub(crate) database: Database,
    /// The service key; `None` lets everybody pass.
    pub(crate) auth_api_key: Option<String>,
    /// The installation's secret; `None` for the one in the data folder.
    pub(crate) secret: Option<[u8; 32]>,
    /// What is stored encrypted is encrypted with; `None` for a key derived from the secret.
    pub(crate) master_key: Option<[u8; 32]>,
    /// The address to listen on.
    pub(crate) bind: IpAddr,
    /// The gateway's port, 0 for any free ports.
    pub(crate) base_port: u16,
    /// Which services to run.
    pub(crate) services: BTreeSet<ServiceName>,
    /// Routes of the gateway that need no credential.
    pub(crate) public_routes: Vec<String>,
    /// Trusted web origins.
    pub(crate) allowed_origins: Vec<String>,
    /// Proxies whose word on the client's address is believed.
    pub(crate) trusted_proxies: Vec<String>,
    /// Where people reach IAM, when that is not where it listens.
    pub(crate) iam_public_url: Option<String>,
    /// The server that sends mail; `None` for the folder.
    pub(crate) smtp_url: Option<String>,
    /// Who mails come from, unless the settings say it.
    pub(crate) mail_from: Option<String>,
    /// The account infrastructure is made in; `None` for this machine.
    pub(crate) cloudflare: Option<CloudflareAccount>,
    /// How long the local provider waits around each change.
    pub(crate) local_latency: Duration,
    /// What runs workers, if anything does.
    pub(crate) workerd: Option<Workerd>,
    /// What is logged.
    pub(crate) log_level: String,
    /// How it is logged.
    pub(crate) log_form: LogForm,
    /// Whether lines that cannot be written in time are dropped.
    pub(crate) log_lossy: bool,
    /// Every limit and time-out.
    pub(crate) settings: Settings,
    /// What was said, file, environment and flags together, as TOML; secrets only as set.
    pub(crate) effective: String,
    /// Options that contradict each other or have no effect, as sentences. Those among the settings are the suite's to find.
    pub(crate) contradictions: Vec<String>,
}

// Keys, the secret, the database's address and the mail server's stay out of logs.
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
    /// Puts flags, environment and file together and checks the result.
    ///
    /// # Errors
    /// [`ConfigError`] names the option that is wrong.
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
                "without it only a loopback address may be bound",
            ));
        }
        let iam_public_url = options.iam_public_url.map(public_url).transpose()?;
        if iam_public_url.is_none() && !bind.is_loopback() {
            return Err(wrong(
                "iam_public_url",
                format!(
                    "is needed to bind {bind}: set --iam-public-url (CORE_IAM_PUBLIC_URL) to the address at which people and \
                     services reach IAM, such as https://iam.example.org"
                ),
            ));
        }
        let base_port = said("base_port", options.base_port)?;
        if base_port > u16::MAX - 10 {
            return Err(wrong(
                "base_port",
                "leaves no room for the services' ports above it",
            ));
        }
        let services = BTreeSet::from_iter(said("services", options.services)?);
        if services.is_empty() {
            return Err(wrong("services", "names no service"));
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
                return Err(wrong("mail_from", "is needed with a mail server"));
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

/// The value of an option that has a default.
fn said<T>(option: &'static str, value: Option<T>) -> Result<T, ConfigError> {
    value.ok_or_else(|| wrong(option, "has no value"))
}
