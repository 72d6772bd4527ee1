//! The options with which connections are opened.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use super::PostgresConfig;
use super::servers::Servers;
use super::tls::{CertificateChecks, Tls, connector};
use crate::sql::postgres::{SessionTimeouts, check_schema_name};

/// The driver's default, which means that the URL does not set `keepalives_idle`.
const DRIVERS_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// The options with which connections are opened.
#[derive(Clone)]
pub(super) struct Options {
    /// All settings except the servers.
    pub(super) config: Config,
    pub(super) servers: Servers,
    pub(super) tls: Tls,
    /// Maximum time to open a connection to one address.
    pub(super) connect_timeout: Duration,
    /// Maximum time to open a connection to one server, over all of its addresses.
    pub(super) server_timeout: Duration,
    /// Maximum wait for the reply to a statement; `None` means no limit.
    pub(super) answer_timeout: Option<Duration>,
    /// The settings of the store: names and values that need no quotes.
    pub(super) settings: Vec<(String, String)>,
    /// Whether a server connection may change after each transaction. The settings are then not those of the session,
    /// and statements are not prepared.
    pub(super) is_pooled: bool,
}

impl Options {
    /// Creates the options for units of work on the primary.
    pub(super) fn new(config: &PostgresConfig) -> Result<Self, StoreError> {
        Self::of_units(&config.url, TargetSessionAttrs::ReadWrite, config)
    }

    /// Creates the options for units of work on a standby.
    pub(super) fn replica(config: &PostgresConfig, url: &str) -> Result<Self, StoreError> {
        Self::of_units(url, TargetSessionAttrs::Any, config)
    }

    fn of_units(
        url: &str,
        servers: TargetSessionAttrs,
        config: &PostgresConfig,
    ) -> Result<Self, StoreError> {
        let options = Self::of_url(url, servers, config)?;
        match config.direct_url {
            Some(_) => Ok(Self {
                is_pooled: true,
                ..options
            }),
            None => Ok(options.with_settings()),
        }
    }

    /// Creates the options for work that needs a session: migrations, notices, hints, and the end of prepared
    /// transactions.
    pub(super) fn direct(config: &PostgresConfig) -> Result<Self, StoreError> {
        let url = config.direct_url.as_ref().unwrap_or(&config.url);
        let options = Self::of_url(url, TargetSessionAttrs::ReadWrite, config)?;
        Ok(options.with_settings())
    }

    /// Creates the options for a URL. `servers` are those that are used if the URL does not select any.
    fn of_url(
        url: &str,
        servers: TargetSessionAttrs,
        config: &PostgresConfig,
    ) -> Result<Self, StoreError> {
        // The cause is omitted because it may contain the URL with its password.
        let invalid = || StoreError::backend("the database URL is invalid");
        let address = ParsedUrl::of(url);
        let mut options = Config::from_str(&address.url).map_err(|_| invalid())?;
        let root_certificates = config.root_certificates.clone();
        let root_certificates = root_certificates.or(address.root_certificates);
        let (mode, checks) =
            tls_mode(address.mode.as_deref(), root_certificates.is_some()).ok_or_else(invalid)?;
        options.ssl_mode(mode);
        if !url.contains("target_session_attrs") {
            options.target_session_attrs(servers);
        }
        let connect_timeout = options.get_connect_timeout().copied();
        let connect_timeout = connect_timeout.unwrap_or(config.connect_timeout);
        options.connect_timeout(connect_timeout);
        let servers = Servers::of(&options).ok_or_else(invalid)?;
        Ok(Self {
            settings: settings(config)?,
            is_pooled: false,
            tls: connector(mode, checks, root_certificates.as_deref())?,
            server_timeout: config.acquire_timeout / servers.count(),
            servers,
            config: with_time_outs(options, config),
            connect_timeout,
            answer_timeout: timeouts(config).answer_timeout(config.reply_margin),
        })
    }

    /// Gives the settings to the session.
    fn with_settings(self) -> Self {
        let settings = self.settings.clone();
        let settings = settings.iter();
        settings.fold(self, |options, (name, value)| options.with(name, value))
    }

    /// Adds a setting of the session.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        let before = self.config.get_options().unwrap_or_default();
        let options = format!("{before} -c {name}={value}");
        self.config.options(options.trim_start());
        self
    }
}

/// Adds the timeouts of the operating system that the URL does not set.
fn with_time_outs(mut options: Config, config: &PostgresConfig) -> Config {
    let keepalive = config.keepalive;
    if options.get_tcp_user_timeout().is_none() {
        options.tcp_user_timeout(config.tcp_user_timeout);
    }
    if options.get_keepalives_idle() == DRIVERS_KEEPALIVE_IDLE {
        options.keepalives_idle(keepalive.idle);
    }
    if options.get_keepalives_interval().is_none() {
        options.keepalives_interval(keepalive.interval);
    }
    if options.get_keepalives_retries().is_none() {
        options.keepalives_retries(keepalive.count);
    }
    options
}

/// Returns the settings that the statements of the store need.
fn settings(config: &PostgresConfig) -> Result<Vec<(String, String)>, StoreError> {
    let settings = timeouts(config).settings().into_iter();
    let mut settings: Vec<_> = settings
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if let Some(schema) = &config.schema {
        check_schema_name(schema)?;
        settings.push(("search_path".to_owned(), schema.clone()));
    }
    Ok(settings)
}

/// Returns the timeouts that the server enforces.
const fn timeouts(config: &PostgresConfig) -> SessionTimeouts {
    SessionTimeouts {
        statement: config.statement_timeout,
        lock: config.lock_timeout,
        idle: config.idle_timeout,
        client_check_interval: config.client_check_interval,
    }
}

/// The URL without the parameters that the driver does not support.
struct ParsedUrl {
    url: String,
    mode: Option<String>,
    root_certificates: Option<PathBuf>,
}

impl ParsedUrl {
    fn of(url: &str) -> Self {
        let (server, query) = url.split_once('?').unwrap_or((url, ""));
        let mut address = Self {
            url: server.to_owned(),
            mode: None,
            root_certificates: None,
        };
        let mut separator = '?';
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("sslmode", mode)) => address.mode = Some(mode.to_owned()),
                Some(("sslrootcert", path)) => address.root_certificates = Some(path.into()),
                _ => {
                    address.url.push(separator);
                    address.url.push_str(part);
                    separator = '&';
                }
            }
        }
        address
    }
}

/// Returns the TLS mode and the certificate checks of an `sslmode`, as libpq defines them; `None` for an unknown mode.
fn tls_mode(mode: Option<&str>, has_roots: bool) -> Option<(SslMode, CertificateChecks)> {
    match mode {
        Some("disable") => Some((SslMode::Disable, CertificateChecks::Nothing)),
        None | Some("allow" | "prefer") => Some((SslMode::Prefer, CertificateChecks::Nothing)),
        Some("require") if !has_roots => Some((SslMode::Require, CertificateChecks::Nothing)),
        Some("require" | "verify-ca") => Some((SslMode::Require, CertificateChecks::Issuer)),
        Some("verify-full") => Some((SslMode::Require, CertificateChecks::IssuerAndName)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_name_that_needs_quotes_is_refused() {
        for name in ["", "1a", "A", "a b", "a\"b", "a,public", &"a".repeat(64)] {
            let mut config = PostgresConfig::new("postgres://localhost/x", [7; 32]);
            config.schema = Some(name.to_owned());
            assert!(Options::new(&config).is_err(), "{name}");
        }
    }

    #[test]
    fn settings_in_the_url_are_kept_in_addition_to_those_of_the_store() {
        let url =
            "postgres://localhost/x?sslmode=disable&options=-c%20geqo%3Doff&application_name=y";
        let options = Options::new(&PostgresConfig::new(url, [7; 32]))
            .ok()
            .unwrap();
        let set = options.config.get_options().unwrap();
        assert!(
            set.starts_with("-c geqo=off -c statement_timeout=20000 "),
            "{set}"
        );
        assert!(
            set.contains("-c client_connection_check_interval=1000"),
            "{set}"
        );
        assert_eq!(options.config.get_application_name(), Some("y"));
        assert_eq!(options.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn connections_go_to_a_writable_server_unless_the_url_says_otherwise() {
        let attributes = |url: &str| {
            let options = Options::new(&PostgresConfig::new(url, [7; 32]));
            options.ok().unwrap().config.get_target_session_attrs()
        };
        let (any, writes) = (TargetSessionAttrs::Any, TargetSessionAttrs::ReadWrite);
        assert_eq!(attributes("postgres://one,two/x"), writes);
        assert_eq!(attributes("host=one,two"), writes);
        assert_eq!(attributes("postgres://one/x?target_session_attrs=any"), any);
        assert_eq!(attributes("host=one target_session_attrs=any"), any);
    }

    #[test]
    fn timeouts_in_the_url_take_precedence_over_the_configuration() {
        let of = |url: &str| {
            let options = Options::new(&PostgresConfig::new(url, [7; 32]));
            options.ok().unwrap()
        };
        let seconds = Duration::from_secs;
        let in_url = of(
            "postgres://one/x?connect_timeout=7&tcp_user_timeout=8&keepalives_idle=9\
             &keepalives_interval=10&keepalives_retries=11",
        );
        assert_eq!(in_url.connect_timeout, seconds(7));
        assert_eq!(in_url.config.get_tcp_user_timeout(), Some(&seconds(8)));
        assert_eq!(in_url.config.get_keepalives_idle(), seconds(9));
        assert_eq!(in_url.config.get_keepalives_interval(), Some(seconds(10)));
        assert_eq!(in_url.config.get_keepalives_retries(), Some(11));
        let defaults = of("postgres://one/x");
        assert_eq!(defaults.connect_timeout, seconds(3));
        assert_eq!(defaults.config.get_tcp_user_timeout(), Some(&seconds(10)));
        assert_eq!(defaults.config.get_keepalives_idle(), seconds(10));
        assert_eq!(defaults.config.get_keepalives_interval(), Some(seconds(5)));
        assert_eq!(defaults.config.get_keepalives_retries(), Some(3));
        assert_eq!(defaults.answer_timeout, Some(seconds(25)));
    }

    #[test]
    fn the_error_for_an_invalid_url_does_not_contain_it() {
        let config = PostgresConfig::new("postgres://me:secret@host:port/x", [7; 32]);
        let error = Options::new(&config).err().expect("the port is no number");
        assert!(!error.to_string().contains("secret"));
    }
}
