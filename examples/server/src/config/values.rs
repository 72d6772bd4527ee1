//! Parses the texts of options.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use core_suite::{Mailbox, RedisConfig, SmtpUrl, Workerd, find_workerd};

use super::error::{ConfigError, option_error};
use super::options::Options;

/// The database that stores the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    /// The memory of this process; records are lost when it ends.
    Memory,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A Postgres server.
    Postgres {
        /// The URL for units of work.
        url: String,
        /// The URL without a pooler; `None` if `url` is that.
        direct_url: Option<String>,
        /// The URL of standbys for lists; `None` if lists read the primary.
        replica_url: Option<String>,
    },
}

/// Parses 64 hexadecimal digits.
pub(super) fn thirty_two_bytes(digits: &str) -> Result<[u8; 32], ConfigError> {
    let refused = || {
        option_error(
            "secret",
            "must be 64 hexadecimal digits (openssl rand -hex 32)",
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

/// Parses a key of 32 bytes: 64 hexadecimal digits, or base64 in either alphabet, padded or not.
pub(super) fn master_key(text: &str) -> Result<[u8; 32], ConfigError> {
    if let Ok(bytes) = thirty_two_bytes(text) {
        return Ok(bytes);
    }
    let standard = text
        .trim_end_matches('=')
        .replace('-', "+")
        .replace('_', "/");
    let bytes = STANDARD_NO_PAD.decode(standard).unwrap_or_default();
    bytes.try_into().map_err(|_| {
        option_error(
            "master_key",
            "must be 32 bytes, as 64 hexadecimal digits or base64 (openssl rand -base64 32)",
        )
    })
}

/// Returns the program that runs workers: the named one, or the one that is found.
pub(super) fn workerd(
    named: Option<&Path>,
    search_path: Option<&str>,
    data: &Path,
) -> Result<Option<Workerd>, ConfigError> {
    let Some(path) = named else {
        return Ok(find_workerd(search_path.map(OsStr::new), data));
    };
    match Workerd::at(path) {
        Some(workerd) => Ok(Some(workerd)),
        None => Err(option_error(
            "workerd",
            format!("{} is not an executable file", path.display()),
        )),
    }
}

/// Parses a URL such as `https://iam.example.org`, without a path.
pub(super) fn public_url(option: &'static str, url: String) -> Result<String, ConfigError> {
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
        Err(option_error(
            option,
            "must have the form https://host.example.org",
        ))
    }
}

/// Checks that a text is a mailbox.
pub(super) fn sender(text: &str) -> Result<(), ConfigError> {
    let mailbox = text.parse::<Mailbox>();
    mailbox.map_err(|problem| option_error("mail_from", problem.to_string()))?;
    Ok(())
}

/// Checks the URL of a mail server.
pub(super) fn mail_server(url: &str) -> Result<(), ConfigError> {
    let url = url.parse::<SmtpUrl>();
    url.map_err(|problem| option_error("smtp_url", problem.to_string()))?;
    Ok(())
}

/// Checks the URL of a Redis server.
pub(super) fn redis_server(url: &str) -> Result<(), ConfigError> {
    let checked = RedisConfig::new(url).check();
    checked.map_err(|error| option_error("redis_url", error.problem))
}

/// Returns the database that stores the records: without a URL the SQLite file in the data folder.
pub(super) fn database(options: &Options) -> Result<Database, ConfigError> {
    let parsed = match options.database_url.as_deref() {
        None if options.is_gateway_only() => Database::Memory,
        None => Database::Sqlite(options.data.join("core.sqlite")),
        Some(url) => parse_database(url)?,
    };
    let further_url = |name, url: &Option<String>, hint: &str| {
        let Some(url) = url else {
            return Ok(None);
        };
        if !matches!(parsed, Database::Postgres { .. }) {
            let problem = format!("is only for a Postgres database: set database_url to {hint}");
            return Err(option_error(name, problem));
        }
        if !is_postgres(url) {
            return Err(option_error(name, "must be postgres://.."));
        }
        Ok(Some(url.clone()))
    };
    let pooler = "the URL of its pooler";
    let direct = further_url("database_direct_url", &options.database_direct_url, pooler)?;
    let primary = "the URL of the primary";
    let replica = further_url(
        "database_replica_url",
        &options.database_replica_url,
        primary,
    )?;
    match parsed {
        Database::Postgres { url, .. } => Ok(Database::Postgres {
            url,
            direct_url: direct,
            replica_url: replica,
        }),
        other => Ok(other),
    }
}

pub(super) fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Parses a database URL.
pub(crate) fn parse_database(url: &str) -> Result<Database, ConfigError> {
    if url == "memory:" {
        return Ok(Database::Memory);
    }
    if is_postgres(url) {
        return Ok(Database::Postgres {
            url: url.to_owned(),
            direct_url: None,
            replica_url: None,
        });
    }
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => Ok(Database::Sqlite(PathBuf::from(path))),
        _ => Err(option_error(
            "database_url",
            "must be sqlite:FILE, postgres://.. or memory:",
        )),
    }
}

impl Options {
    /// Reads the secrets that are given as files into the options for their values.
    ///
    /// # Errors
    /// [`ConfigError`] names a secret that is set twice or empty, or whose file cannot be read. An empty secret does not
    /// mean "not set".
    pub(super) fn read_secret_files(&mut self) -> Result<(), ConfigError> {
        macro_rules! secrets {
            ($($value:ident or $file:ident),* $(,)?) => {
                [$((stringify!($value), &mut self.$value, &self.$file)),*]
            };
        }
        for (option, value, file) in secrets![
            cloudflare_api_token or cloudflare_api_token_file,
            cloudflare_account_id or cloudflare_account_id_file,
            cloudflare_api_base_url or cloudflare_api_base_url_file,
            database_url or database_url_file,
            database_direct_url or database_direct_url_file,
            database_replica_url or database_replica_url_file,
            redis_url or redis_url_file,
            s3_access_key_id or s3_access_key_id_file,
            s3_secret_access_key or s3_secret_access_key_file,
            secret or secret_file,
            master_key or master_key_file,
            auth_api_key or auth_api_key_file,
            smtp_url or smtp_url_file,
            otlp_headers or otlp_headers_file,
            stripe_secret_key or stripe_secret_key_file,
            stripe_webhook_secret or stripe_webhook_secret_file,
        ] {
            if let Some(file) = file {
                if value.is_some() {
                    return Err(option_error(
                        option,
                        "is set twice: as a value and as a file",
                    ));
                }
                let text = std::fs::read_to_string(file)
                    .map_err(|e| option_error(option, format!("{}: {e}", file.display())))?;
                *value = Some(text.trim_end_matches(['\r', '\n']).to_owned());
            }
            if value.as_deref() == Some("") {
                return Err(option_error(option, "is empty"));
            }
        }
        Ok(())
    }
}
