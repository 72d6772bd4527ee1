//! The server's configuration. Flags override environment variables, which override the TOML file, which overrides the
//! defaults. Unknown keys are refused.

mod cells;
mod cloudflare;
mod contradictions;
mod error;
mod options;
mod s3;
mod sources;
mod stripe;
#[cfg(test)]
mod tests;
mod traces;
mod values;

use clap::ArgMatches;
use core_suite::{
    Cells, CloudflareAccount, MailOptions, OtlpConfig, ServiceKey, StripeAccount, Workerd,
};
use tracing_subscriber::EnvFilter;

pub(crate) use self::error::ConfigError;
use self::error::option_error;
use self::options::Options;
pub(crate) use self::options::{Cli, Command, JournalFormat, LogForm};
use self::s3::Bucket;
pub(crate) use self::values::{Database, parse_database};
use self::values::{
    database, mail_server, master_key, public_url, redis_server, sender, thirty_two_bytes, workerd,
};

/// The complete, validated configuration.
#[derive(Clone)]
pub(crate) struct Config {
    /// The values of all options. Secrets given as files are read.
    pub(crate) options: Options,
    /// The database that stores the records.
    pub(crate) database: Database,
    /// The databases of other cells; empty if one database has all records.
    pub(crate) cells: Cells,
    /// The installation's secret; `None` means the secret stored in the data folder.
    pub(crate) secret: Option<[u8; 32]>,
    /// The key that encrypts stored secrets; `None` means a key derived from the installation's secret.
    pub(crate) master_key: Option<[u8; 32]>,
    /// The bucket that stores uploads; `None` means the data folder.
    pub(crate) bucket: Option<Bucket>,
    /// The account in which infrastructure is created; `None` means this machine.
    pub(crate) cloudflare: Option<CloudflareAccount>,
    /// The account that charges invoices; `None` means the embedded provider, whose money is simulated.
    pub(crate) stripe: Option<StripeAccount>,
    /// The collector that receives traces; `None` if no traces are exported.
    pub(crate) collector: Option<OtlpConfig>,
    /// The program that runs workers; `None` if workers are only stored.
    pub(crate) workerd: Option<Workerd>,
    /// The effective configuration as TOML: file, environment and flags together. Secrets appear only as set.
    pub(crate) effective: String,
    /// Options that contradict each other or have no effect, as sentences. The suite finds those among the settings.
    pub(crate) contradictions: Vec<String>,
}

// Keys, the secret and the URLs of the database, Redis and the mail server must not appear in logs.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("data", &self.options.data)
            .field("bind", &self.options.bind)
            .field("base_port", &self.options.base_port)
            .field("services", &self.options.services)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Merges flags, environment and file, and validates the result. `cli` is read from `matches`.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid option.
    pub(crate) fn load(
        cli: &Cli,
        matches: &ArgMatches,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let environment: Vec<_> = environment.into_iter().collect();
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let search_path = path.map(|(_, folders)| folders.clone());
        let aws = s3::aws_variables(&environment);
        let sources = sources::merge(cli, matches, environment)?;
        let options: Options = sources.extract().map_err(Box::new)?;
        Self::check(
            options,
            sources::effective(&sources)?,
            search_path.as_deref(),
            &aws,
        )
    }

    fn check(
        mut options: Options,
        effective: String,
        search_path: Option<&str>,
        aws: &[(String, String)],
    ) -> Result<Self, ConfigError> {
        options.read_secret_files()?;
        let bucket = s3::bucket(&mut options, aws)?;
        let cloudflare = cloudflare::account(&options)?;
        let stripe = stripe::account(&options)?;
        let collector = traces::collector(&mut options)?;
        let contradictions = contradictions::find(&options, cloudflare.is_some());
        if let Some(key) = &options.auth_api_key {
            ServiceKey::new(key)
                .map_err(|problem| option_error("auth_api_key", problem.to_string()))?;
        }
        let bind = options.bind;
        let open = options.allow_unauthenticated || bind.is_loopback();
        if options.auth_api_key.is_none() && !open {
            return Err(option_error(
                "auth_api_key",
                "is required to bind an address that is not loopback",
            ));
        }
        let check =
            |option, url: Option<String>| url.map(|url| public_url(option, url)).transpose();
        options.iam_url = check("iam_url", options.iam_url)?;
        options.iam_public_url = check("iam_public_url", options.iam_public_url)?;
        options.iam_public_url = options.iam_public_url.or_else(|| options.iam_url.clone());
        options.gateway_public_url = check("gateway_public_url", options.gateway_public_url)?;
        options.billing_public_url = check("billing_public_url", options.billing_public_url)?;
        if options.iam_public_url.is_none() && !bind.is_loopback() {
            return Err(option_error(
                "iam_public_url",
                format!(
                    "is required to bind {bind}: set --iam-public-url (CORE_IAM_PUBLIC_URL) to the address at which people and \
                     services reach IAM, such as https://iam.example.org"
                ),
            ));
        }
        if options.base_port > u16::MAX - 10 {
            return Err(option_error(
                "base_port",
                "must be at most 65525: the services use the ports above it",
            ));
        }
        if options.services.is_empty() {
            return Err(option_error("services", "must name at least one service"));
        }
        // With a database, the gateway can run the service on the records that all processes share.
        if options.database_url.is_none()
            && let Some(missing) = options.missing_service_url()
        {
            return Err(option_error(
                missing,
                "is required: other services run in other processes, and this process has no database (database_url)",
            ));
        }
        EnvFilter::try_new(&options.log_level)
            .map_err(|problem| option_error("log_level", problem.to_string()))?;
        // Simulated money is harmless on a machine that only its own user reaches.
        options.settings.billing.allow_simulated_payments |=
            options.allow_simulated_payments || bind.is_loopback();
        if options.settings.billing.test_clock && !bind.is_loopback() {
            return Err(option_error(
                "billing.test_clock",
                format!("must not be on when the server is reachable at {bind}"),
            ));
        }
        options.settings.limits.enforce_quotas |= options.billing_enforce_quotas;
        let hosts = &mut options.settings.billing.portal_return_hosts;
        hosts.extend(options.portal_return_hosts.iter().cloned());
        options.settings.check().map_err(ConfigError::Setting)?;
        if let Some(mailbox) = &options.mail_from {
            sender(mailbox)?;
        }
        if let Some(url) = &options.smtp_url {
            mail_server(url)?;
            if options.mail_from.is_none()
                && options.settings.mail.sender == MailOptions::default().sender
            {
                return Err(option_error("mail_from", "is required with a mail server"));
            }
        }
        if let Some(url) = &options.redis_url {
            redis_server(url)?;
        }
        let secret = options.secret.as_deref();
        let at_rest = options.master_key.as_deref();
        let database = database(&options)?;
        Ok(Self {
            cells: cells::cells(&options, &database)?,
            database,
            secret: secret.map(thirty_two_bytes).transpose()?,
            master_key: at_rest.map(master_key).transpose()?,
            bucket,
            cloudflare,
            stripe,
            collector,
            workerd: workerd(options.workerd.as_deref(), search_path, &options.data)?,
            options,
            effective,
            contradictions,
        })
    }
}
