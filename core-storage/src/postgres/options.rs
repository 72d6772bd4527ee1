//! How a connection is opened.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use super::PostgresConfig;
use super::servers::Servers;
use super::tls::{Checks, Tls, connector};

/// The longest name that Postgres keeps as it is.
const MAX_NAME: usize = 63;
/// The default of the driver.
const DRIVERS_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// What connections are opened with.
#[derive(Clone)]
pub(super) struct Options {
    /// All but the servers.
    pub(super) config: Config,
    pub(super) servers: Servers,
    pub(super) tls: Tls,
    /// Maximum time to open a connection to one address.
    pub(super) connect_timeout: Duration,
    /// Maximum time to open a connection to one server, over all its addresses.
    pub(super) server_timeout: Duration,
    /// How long the answer to a statement is waited for; `None` is for ever.
    pub(super) answer_timeout: Option<Duration>,
}

impl Options {
    /// What the store is configured with.
    pub(super) fn new(config: &PostgresConfig) -> Result<Self, StoreError> {
        // The cause is left out: it may quote the address, which may hold a password.
        let invalid = || StoreError::backend("the database address is not valid");
        let address = Address::of(&config.url);
        let mut options = Config::from_str(&address.url).map_err(|_| invalid())?;
        let root_certificates = config.root_certificates.clone();
        let root_certificates = root_certificates.or(address.root_certificates);
        let (mode, checks) =
            tls_mode(address.mode.as_deref(), root_certificates.is_some()).ok_or_else(invalid)?;
        options.ssl_mode(mode);
        if !config.url.contains("target_session_attrs") {
            options.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let connect_timeout = options.get_connect_timeout().copied();
        let connect_timeout = connect_timeout.unwrap_or(config.connect_timeout);
        options.connect_timeout(connect_timeout);
        let servers = Servers::of(&options).ok_or_else(invalid)?;
        let options = Self {
            tls: connector(mode, checks, root_certificates.as_deref())?,
            server_timeout: config.acquire_timeout / servers.count(),
            servers,
            config: with_time_outs(options, config),
            connect_timeout,
            answer_timeout: answer_timeout(config),
        };
        let options = options
            .with("statement_timeout", &millis(config.statement_timeout))
            .with("lock_timeout", &millis(config.lock_timeout))
            .with(
                "idle_in_transaction_session_timeout",
                &millis(config.idle_timeout),
            )
            .with_client_check(config.client_check_interval)
            // A scan of a small table takes a predicate lock on all of it, and every writer of the table conflicts.
            .with("enable_seqscan", "off")
            // Statements are short: compiling one takes longer than running it.
            .with("jit", "off");
        match &config.schema {
            Some(schema) if is_name(schema) => Ok(options.with("search_path", schema)),
            Some(_) => Err(StoreError::backend(
                "the name of the schema is not valid: small letters, digits and _",
            )),
            None => Ok(options),
        }
    }

    /// The same with the interval at which the server looks whether the client is there.
    fn with_client_check(self, interval: Duration) -> Self {
        if interval.is_zero() {
            return self;
        }
        self.with("client_connection_check_interval", &millis(interval))
    }

    /// The same with a setting of the server.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        let before = self.config.get_options().unwrap_or_default();
        let options = format!("{before} -c {name}={value}");
        self.config.options(options.trim_start());
        self
    }
}

/// Adds the time-outs of the system that the address does not name.
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

/// The server ends a statement first, as long as it lives.
fn answer_timeout(config: &PostgresConfig) -> Option<Duration> {
    let limit = config.statement_timeout;
    (!limit.is_zero()).then(|| limit.saturating_add(config.answer_margin))
}

/// The address without what the driver does not know.
struct Address {
    url: String,
    mode: Option<String>,
    root_certificates: Option<PathBuf>,
}

impl Address {
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

/// What an `sslmode` means, as libpq has it.
fn tls_mode(mode: Option<&str>, has_roots: bool) -> Option<(SslMode, Checks)> {
    match mode {
        Some("disable") => Some((SslMode::Disable, Checks::Nothing)),
        None | Some("allow" | "prefer") => Some((SslMode::Prefer, Checks::Nothing)),
        Some("require") if !has_roots => Some((SslMode::Require, Checks::Nothing)),
        Some("require" | "verify-ca") => Some((SslMode::Require, Checks::Issuer)),
        Some("verify-full") => Some((SslMode::Require, Checks::IssuerAndName)),
        Some(_) => None,
    }
}

/// Postgres takes 0 as no limit; a limit below a millisecond is one of a millisecond.
fn millis(timeout: Duration) -> String {
    match timeout.as_millis() {
        0 if !timeout.is_zero() => "1".to_owned(),
        // The greatest that Postgres takes.
        millis => millis.min(i32::MAX as u128).to_string(),
    }
}

/// Tells whether it is a name that needs no quotes.
fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    starts && name.len() <= MAX_NAME && name.chars().all(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_whose_name_could_be_more_than_a_name_is_refused() {
        for name in ["", "1a", "A", "a b", "a\"b", "a,public", &"a".repeat(64)] {
            let mut config = PostgresConfig::new("postgres://localhost/x", [7; 32]);
            config.schema = Some(name.to_owned());
            assert!(Options::new(&config).is_err(), "{name}");
        }
    }

    #[test]
    fn settings_of_an_address_are_kept_beside_those_of_the_store() {
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
    fn connections_go_to_a_server_that_accepts_writes_unless_the_address_says_otherwise() {
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
    fn time_outs_of_an_address_win_over_those_of_the_store() {
        let of = |url: &str| {
            let options = Options::new(&PostgresConfig::new(url, [7; 32]));
            options.ok().unwrap()
        };
        let seconds = Duration::from_secs;
        let told = of(
            "postgres://one/x?connect_timeout=7&tcp_user_timeout=8&keepalives_idle=9\
             &keepalives_interval=10&keepalives_retries=11",
        );
        assert_eq!(told.connect_timeout, seconds(7));
        assert_eq!(told.config.get_tcp_user_timeout(), Some(&seconds(8)));
        assert_eq!(told.config.get_keepalives_idle(), seconds(9));
        assert_eq!(told.config.get_keepalives_interval(), Some(seconds(10)));
        assert_eq!(told.config.get_keepalives_retries(), Some(11));
        let untold = of("postgres://one/x");
        assert_eq!(untold.connect_timeout, seconds(3));
        assert_eq!(untold.config.get_tcp_user_timeout(), Some(&seconds(10)));
        assert_eq!(untold.config.get_keepalives_idle(), seconds(10));
        assert_eq!(untold.config.get_keepalives_interval(), Some(seconds(5)));
        assert_eq!(untold.config.get_keepalives_retries(), Some(3));
        assert_eq!(untold.answer_timeout, Some(seconds(25)));
    }

    #[test]
    fn an_address_that_is_not_valid_is_not_shown() {
        let config = PostgresConfig::new("postgres://me:secret@host:port/x", [7; 32]);
        let error = Options::new(&config).err().expect("the port is no number");
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn a_timeout_is_told_in_milliseconds_and_only_zero_means_for_ever() {
        assert_eq!(millis(Duration::ZERO), "0");
        assert_eq!(millis(Duration::from_nanos(1)), "1");
        assert_eq!(millis(Duration::from_secs(20)), "20000");
        assert_eq!(millis(Duration::MAX), i32::MAX.to_string());
    }
}
