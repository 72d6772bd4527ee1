//! What the server is told: flags over environment over TOML file. Unknown keys of the file are refused.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum as _};
use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
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
    /// The options themselves.
    #[command(flatten)]
    pub(crate) options: Options,
}

/// What the binary can do besides running.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Command {
    /// Reads the configuration, says what is wrong with it, and ends.
    CheckConfig,
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
    /// The service key of the gateway. Without it every request passes unauthenticated: loopback only.
    #[arg(long, env = "AUTH_API_KEY", global = true, hide_env_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth_api_key: Option<String>,
    /// A file that holds the service key.
    #[arg(long, env = "AUTH_API_KEY_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth_api_key_file: Option<PathBuf>,
    /// What sessions and cursors are sealed with: 64 hexadecimal digits, the same on every node
    /// [default: drawn once and kept in the data folder].
    #[arg(long, env = "CORE_SECRET", global = true, hide_env_values = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<String>,
    /// A file that holds that secret.
    #[arg(long, env = "CORE_SECRET_FILE", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret_file: Option<PathBuf>,
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
    /// Proxies before the gateway and IAM whose X-Forwarded-For is believed, addresses or ranges [default: none].
    #[arg(
        long,
        env = "CORE_TRUSTED_PROXIES",
        value_delimiter = ',',
        global = true
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trusted_proxies: Option<Vec<String>>,
    /// The address people reach IAM at; https binds its cookies to https [default: the address it listens on].
    #[arg(long, env = "CORE_IAM_PUBLIC_URL", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iam_public_url: Option<String>,
    /// Milliseconds the local provider waits before and after each change, to watch jobs at work [default: 0].
    #[arg(long, env = "CORE_LOCAL_LATENCY_MS", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) local_latency_ms: Option<u64>,
    /// Listen beyond loopback although no service key is set.
    #[arg(long, env = "ALLOW_UNAUTHENTICATED", global = true)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow_unauthenticated: Option<bool>,
}

/// Where records are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// In this process; gone when it ends.
    Memory,
    /// In a file.
    Sqlite(PathBuf),
    /// On a server.
    Postgres(String),
}

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
    /// How long the local provider waits around each change.
    pub(crate) local_latency: Option<Duration>,
}

// Keys, the secret and the database's address stay out of logs.
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

/// Why a configuration is refused. Never shows a secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read or has a key nobody knows.
    #[error("the configuration file: {0}")]
    File(#[from] Box<figment::Error>),
    /// An option has a value that means nothing.
    #[error("{option}: {problem}")]
    Option {
        /// Which.
        option: &'static str,
        /// Why.
        problem: String,
    },
}

fn wrong(option: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Option {
        option,
        problem: problem.into(),
    }
}

impl Config {
    /// Puts flags, environment and file together and checks the result.
    ///
    /// # Errors
    /// [`ConfigError`] names the option that is wrong.
    pub(crate) fn load(cli: &Cli) -> Result<Self, ConfigError> {
        let mut figment = Figment::new();
        if let Some(file) = &cli.config {
            if !file.is_file() {
                return Err(wrong("config", format!("{} is not a file", file.display())));
            }
            figment = figment.merge(Toml::file(file));
        }
        let options: Options = figment
            .merge(Serialized::defaults(&cli.options))
            .extract()
            .map_err(Box::new)?;
        Self::check(options)
    }

    fn check(options: Options) -> Result<Self, ConfigError> {
        let data = options.data.unwrap_or_else(|| PathBuf::from("core-data"));
        let url = secret(
            "database_url",
            options.database_url,
            options.database_url_file.as_deref(),
        )?;
        let installation = secret("secret", options.secret, options.secret_file.as_deref())?;
        let auth_api_key = secret(
            "auth_api_key",
            options.auth_api_key,
            options.auth_api_key_file.as_deref(),
        )?;
        let bind = options.bind.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        if auth_api_key.is_none()
            && !bind.is_loopback()
            && options.allow_unauthenticated != Some(true)
        {
            return Err(wrong(
                "auth_api_key",
                "without it only a loopback address may be bound",
            ));
        }
        let base_port = options.base_port.unwrap_or(8080);
        if base_port > u16::MAX - 10 {
            return Err(wrong(
                "base_port",
                "leaves no room for the services' ports above it",
            ));
        }
        let services: BTreeSet<_> = options.services.map_or_else(
            || ServiceName::value_variants().iter().copied().collect(),
            |named| named.into_iter().collect(),
        );
        if services.is_empty() {
            return Err(wrong("services", "names no service"));
        }
        Ok(Self {
            database: database(url.as_deref(), &data)?,
            data,
            auth_api_key,
            secret: installation.as_deref().map(thirty_two_bytes).transpose()?,
            bind,
            base_port,
            services,
            public_routes: options.public_routes.unwrap_or_default(),
            allowed_origins: options.allowed_origins.unwrap_or_default(),
            trusted_proxies: options.trusted_proxies.unwrap_or_default(),
            iam_public_url: options.iam_public_url.map(public_url).transpose()?,
            local_latency: options.local_latency_ms.map(Duration::from_millis),
        })
    }
}

/// What 64 hexadecimal digits say.
fn thirty_two_bytes(digits: &str) -> Result<[u8; 32], ConfigError> {
    let refused = || {
        wrong(
            "secret",
            "is not of 64 hexadecimal digits (openssl rand -hex 32)",
        )
    };
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(refused());
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        let pair = &digits[2 * at..2 * at + 2];
        *byte = u8::from_str_radix(pair, 16).map_err(|_| refused())?;
    }
    Ok(bytes)
}

/// An address such as `https://iam.example.org`, without a path.
fn public_url(url: String) -> Result<String, ConfigError> {
    let url = url.trim_end_matches('/').to_owned();
    let uri: Option<http::Uri> = url.parse().ok();
    let fits = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.path() == "/"
            && uri.query().is_none()
    });
    if fits {
        Ok(url)
    } else {
        Err(wrong(
            "iam_public_url",
            "is not of the form https://iam.example.org",
        ))
    }
}

fn database(url: Option<&str>, data: &Path) -> Result<Database, ConfigError> {
    match url {
        None => Ok(Database::Sqlite(data.join("core.sqlite"))),
        Some("memory:") => Ok(Database::Memory),
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Ok(Database::Postgres(url.to_owned()))
        }
        Some(url) => match url.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Database::Sqlite(PathBuf::from(path))),
            _ => Err(wrong(
                "database_url",
                "is none of sqlite:FILE, postgres://.., memory:",
            )),
        },
    }
}

/// A secret, given by itself or in a file; an empty one is a mistake, not "unset".
fn secret(
    option: &'static str,
    value: Option<String>,
    file: Option<&Path>,
) -> Result<Option<String>, ConfigError> {
    let value = match (value, file) {
        (Some(_), Some(_)) => return Err(wrong(option, "is given twice: by itself and in a file")),
        (Some(value), None) => Some(value),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file)
                .map_err(|e| wrong(option, format!("{}: {e}", file.display())))?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        (None, None) => None,
    };
    if value.as_deref() == Some("") {
        return Err(wrong(option, "is empty"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(arguments: &[&str]) -> Result<Config, ConfigError> {
        let cli =
            Cli::try_parse_from(std::iter::once("core-server").chain(arguments.iter().copied()))
                .unwrap();
        Config::load(&cli)
    }

    #[test]
    fn nothing_said_means_sqlite_on_loopback_with_every_service() {
        let config = load(&[]).unwrap();
        assert_eq!(
            config.database,
            Database::Sqlite(PathBuf::from("core-data/core.sqlite"))
        );
        assert!(config.bind.is_loopback());
        assert_eq!(config.services.len(), ServiceName::value_variants().len());
    }

    #[test]
    fn flags_win_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("core.toml");
        std::fs::write(&file, "base_port = 9000\ndatabase_url = \"memory:\"\n").unwrap();
        let config = load(&["--config", file.to_str().unwrap(), "--base-port", "9100"]).unwrap();
        assert_eq!(config.base_port, 9100);
        assert_eq!(config.database, Database::Memory);
    }

    #[test]
    fn an_unknown_key_of_the_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("core.toml");
        std::fs::write(&file, "base_prot = 9000\n").unwrap();
        let error = load(&["--config", file.to_str().unwrap()]).unwrap_err();
        assert!(error.to_string().contains("base_prot"), "{error}");
    }

    #[test]
    fn beyond_loopback_a_service_key_is_demanded() {
        assert!(load(&["--bind", "0.0.0.0"]).is_err());
        assert!(load(&["--bind", "0.0.0.0", "--auth-api-key", "k"]).is_ok());
    }

    #[test]
    fn the_public_address_of_iam_is_an_origin() {
        let url = |url| load(&["--iam-public-url", url]).map(|config| config.iam_public_url);
        let good = Some("https://iam.example.org".to_owned());
        assert_eq!(url("https://iam.example.org/").unwrap(), good);
        for bad in [
            "iam.example.org",
            "ftp://a",
            "https://a/b",
            "https://a?b",
            "",
        ] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_empty_service_key_is_refused() {
        assert!(load(&["--auth-api-key", ""]).is_err());
    }

    #[test]
    fn a_secret_may_come_from_a_file_but_not_twice() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, "sesame\n").unwrap();
        let path = file.to_str().unwrap();
        assert_eq!(
            load(&["--auth-api-key-file", path])
                .unwrap()
                .auth_api_key
                .as_deref(),
            Some("sesame")
        );
        assert!(load(&["--auth-api-key-file", path, "--auth-api-key", "k"]).is_err());
    }

    #[test]
    fn the_secret_of_the_installation_is_of_64_hexadecimal_digits() {
        let secret = |text: &str| load(&["--secret", text]).map(|config| config.secret);
        let mut expected = [0; 32];
        expected[0] = 0x0f;
        expected[31] = 0xa1;
        let text = format!("0F{}a1", "00".repeat(30));
        assert_eq!(secret(&text).unwrap(), Some(expected));
        for wrong in ["", "abc", &"g".repeat(64), &"0".repeat(66), &"é".repeat(32)] {
            assert!(secret(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(load(&[]).unwrap().secret, None);
    }

    #[test]
    fn a_database_url_of_another_kind_is_refused() {
        assert!(load(&["--database-url", "mysql://x"]).is_err());
    }
}
