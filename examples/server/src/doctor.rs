//! The command that checks the surroundings of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use core_suite::doctor::{Finding, Severity, check_service};
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::config::{Config, Database};
use crate::run::builder;

/// Maximum time to look up a host, and to read the state of the database.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The effects of another secret on an existing installation.
const NEW_SECRET: &str = "a new secret ends all sessions, makes earlier checkpoints of the audit log invalid, and \
                          makes stored secrets unreadable that no CORE_MASTER_KEY encrypts";

/// Prints a finding for each subject. Returns whether nothing prevents the server from working.
///
/// # Errors
/// The runtime cannot be created.
#[expect(
    clippy::print_stdout,
    reason = "the findings are the output of this command"
)]
pub(crate) fn run(config: &Config) -> std::io::Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let findings = runtime.block_on(async {
        let mut findings = builder(config).diagnose().await;
        findings.extend(key_findings(&Keys::of(config).await));
        findings.extend(address_findings(config).await);
        findings.extend(remote_findings(config).await);
        findings.extend(proxy_finding(config));
        findings
    });
    // A lookup of a host that takes too long is not waited for.
    runtime.shutdown_background();
    for finding in &findings {
        println!("{finding}");
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    Ok(worst < Some(Severity::Failure))
}

/// The state of the database. Keys can be chosen freely only for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatabaseState {
    /// Records are in memory, so no key outlives the process.
    Memory,
    /// The database has no tables.
    New,
    /// The database has tables.
    Existing,
    /// The database cannot be read.
    Unreadable,
}

impl DatabaseState {
    async fn of(config: &Config) -> Self {
        if config.database == Database::Memory {
            return Self::Memory;
        }
        let plan = Box::pin(builder(config).plan_migrations());
        match timeout(CHECK_TIMEOUT, plan).await {
            Ok(Ok(plan)) if plan.applied == 0 => Self::New,
            Ok(Ok(_)) => Self::Existing,
            _ => Self::Unreadable,
        }
    }
}

/// The keys of a configuration, without their values.
#[derive(Clone, Debug)]
struct Keys {
    has_service_key: bool,
    has_secret: bool,
    has_master_key: bool,
    database: DatabaseState,
    /// `true` if several nodes can use the database.
    is_shared: bool,
    /// The file that contains the secret if none is set.
    secret_file: PathBuf,
    has_secret_file: bool,
}

impl Keys {
    async fn of(config: &Config) -> Self {
        let secret_file = config.options.data.join("secret");
        Self {
            has_service_key: config.options.auth_api_key.is_some(),
            has_secret: config.secret.is_some(),
            has_master_key: config.master_key.is_some(),
            database: DatabaseState::of(config).await,
            is_shared: matches!(config.database, Database::Postgres { .. }),
            // A folder that cannot be read is reported elsewhere.
            has_secret_file: secret_file.try_exists().unwrap_or(true),
            secret_file,
        }
    }
}

/// Checks the keys that every node must share.
fn key_findings(keys: &Keys) -> Vec<Finding> {
    let found = [
        service_key_finding(keys),
        secret_finding(keys),
        master_key_finding(keys),
    ];
    let found: Vec<Finding> = found.into_iter().flatten().collect();
    match found.is_empty() {
        true => vec![Finding::fine("keys", "set as this installation needs them")],
        false => found,
    }
}

fn service_key_finding(keys: &Keys) -> Option<Finding> {
    let text = "there is no service key: every request passes unauthenticated; set AUTH_API_KEY";
    (!keys.has_service_key).then(|| Finding::warning("keys", text))
}

fn secret_finding(keys: &Keys) -> Option<Finding> {
    if keys.has_secret || keys.database == DatabaseState::Memory {
        return None;
    }
    let text = match keys.database {
        DatabaseState::Existing if !keys.has_secret_file => format!(
            "the database has tables, but {} does not exist, so the server would generate a new secret; if servers \
             have used the database, restore this file, or set CORE_SECRET to their secret: {NEW_SECRET}",
            keys.secret_file.display()
        ),
        _ if !keys.is_shared => return None,
        DatabaseState::New if !keys.has_secret_file => format!(
            "the secret will be generated as {}; for several nodes, set the same CORE_SECRET on all of them before the \
             first start (openssl rand -hex 32)",
            keys.secret_file.display()
        ),
        _ => format!(
            "the secret is the file {0}; for several nodes, set CORE_SECRET on all of them to this secret in \
             hexadecimal (od -An -v -tx1 {0} | tr -d ' \\n'), not to a new one: {NEW_SECRET}",
            keys.secret_file.display()
        ),
    };
    Some(Finding::warning("keys", text))
}

fn master_key_finding(keys: &Keys) -> Option<Finding> {
    if keys.has_master_key {
        return None;
    }
    let has_any_secret = keys.has_secret || keys.has_secret_file;
    match keys.database {
        DatabaseState::New => {
            let text = "stored secrets will be encrypted with a key derived from the secret; set CORE_MASTER_KEY \
                        before the first start, so that a backup without it is unreadable: it cannot be set later";
            Some(Finding::warning("keys", text))
        }
        DatabaseState::Existing if has_any_secret => {
            let text = "stored secrets are encrypted with a key derived from the secret, which cannot be changed: \
                        keep the secret, and do not set CORE_MASTER_KEY, which would make them unreadable";
            Some(Finding::fine("keys", text))
        }
        DatabaseState::Unreadable => {
            let text = "stored secrets are encrypted with a key derived from the secret; CORE_MASTER_KEY can be \
                        set only before the first start";
            Some(Finding::fine("keys", text))
        }
        DatabaseState::Existing | DatabaseState::Memory => None,
    }
}

/// Checks that the public URLs are encrypted and that their hosts resolve.
async fn address_findings(config: &Config) -> Vec<Finding> {
    let options = &config.options;
    let urls = [
        ("iam_public_url", &options.iam_public_url),
        ("gateway_public_url", &options.gateway_public_url),
        ("billing_public_url", &options.billing_public_url),
    ];
    let mut found = Vec::new();
    for (option, url) in urls {
        let Some(url) = url else { continue };
        found.push(address_finding(option, url).await);
    }
    found
}

async fn address_finding(option: &str, url: &str) -> Finding {
    let Some((address, is_encrypted)) = host_and_port(url) else {
        return Finding::failure("addresses", format!("{option}: {url} is not a URL"));
    };
    let outcome = match timeout(CHECK_TIMEOUT, lookup_host(&address)).await {
        Ok(Ok(found)) => Ok(found.collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no response in time".to_owned()),
    };
    lookup_finding(option, url, is_encrypted, outcome)
}

/// Returns the finding for the addresses of the host of a URL.
fn lookup_finding(
    option: &str,
    url: &str,
    is_encrypted: bool,
    outcome: Result<Vec<SocketAddr>, String>,
) -> Finding {
    let subject = "addresses";
    let found = match outcome {
        Ok(found) if found.is_empty() => {
            let text = format!("{option}: the host of {url} has no address in DNS");
            return Finding::failure(subject, text);
        }
        Ok(found) => found,
        Err(error) => {
            let text = format!("{option}: the host of {url} does not resolve: {error}; check DNS");
            return Finding::failure(subject, text);
        }
    };
    if is_encrypted || found.iter().all(|address| address.ip().is_loopback()) {
        return Finding::fine(subject, format!("{option}: {url} resolves"));
    }
    let text =
        format!("{option}: {url} is not encrypted; use https, so that cookies are protected");
    Finding::warning(subject, text)
}

/// Checks that the services in other processes are ready.
async fn remote_findings(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    for (service, url) in config.options.remote_services() {
        found.push(check_service(service.as_str(), url).await);
    }
    found
}

fn proxy_finding(config: &Config) -> Option<Finding> {
    let options = &config.options;
    let is_public = !options.bind.is_loopback();
    let text = "no proxy is trusted; if there is one in front of this server, all its clients share one rate limit: \
                set --trusted-proxies";
    (is_public && options.trusted_proxies.is_empty()).then(|| Finding::warning("proxies", text))
}

/// Returns `host:port` of a URL, and whether its scheme is https.
fn host_and_port(url: &str) -> Option<(String, bool)> {
    let uri: http::Uri = url.parse().ok()?;
    let is_encrypted = uri.scheme_str() == Some("https");
    let port = uri
        .port_u16()
        .unwrap_or(if is_encrypted { 443 } else { 80 });
    Some((format!("{}:{port}", uri.host()?), is_encrypted))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::config::Cli;

    fn load(arguments: &[&str]) -> Config {
        let arguments = std::iter::once("core-server").chain(arguments.iter().copied());
        let matches = Cli::command().try_get_matches_from(arguments).unwrap();
        let cli = Cli::from_arg_matches(&matches).unwrap();
        Config::load(&cli, &matches, []).unwrap()
    }

    /// Returns the keys of a node that has only a secret in its data folder.
    fn keys(database: DatabaseState) -> Keys {
        Keys {
            has_service_key: true,
            has_secret: false,
            has_master_key: false,
            database,
            is_shared: true,
            secret_file: PathBuf::from("/var/lib/core/secret"),
            has_secret_file: database == DatabaseState::Existing,
        }
    }

    #[test]
    fn a_missing_service_key_is_a_warning() {
        let complete = Keys {
            has_secret: true,
            has_master_key: true,
            ..keys(DatabaseState::Existing)
        };
        let found = key_findings(&complete);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Fine, "{}", found[0]);
        let open = Keys {
            has_service_key: false,
            ..complete
        };
        let found = key_findings(&open);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning, "{}", found[0]);
        assert!(found[0].text.contains("AUTH_API_KEY"), "{}", found[0]);
    }

    #[test]
    fn the_secret_of_an_existing_installation_is_to_be_kept() {
        let existing = keys(DatabaseState::Existing);
        let found = secret_finding(&existing).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        for part in [
            "od -An -v -tx1 /var/lib/core/secret | tr -d ' \\n'",
            "not to a new one",
            "ends all sessions",
            "checkpoints",
        ] {
            assert!(found.text.contains(part), "{part}: {found}");
        }
        let lost = Keys {
            has_secret_file: false,
            is_shared: false,
            ..existing.clone()
        };
        let found = secret_finding(&lost).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.text.contains("restore this file"), "{found}");
        let alone = Keys {
            is_shared: false,
            ..existing.clone()
        };
        assert_eq!(secret_finding(&alone), None);
        let set = Keys {
            has_secret: true,
            ..existing
        };
        assert_eq!(secret_finding(&set), None);
    }

    #[test]
    fn a_new_database_for_several_nodes_needs_one_secret() {
        let found = secret_finding(&keys(DatabaseState::New)).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.text.contains("openssl rand -hex 32"), "{found}");
        assert_eq!(secret_finding(&keys(DatabaseState::Memory)), None);
    }

    #[test]
    fn a_master_key_is_advised_only_for_a_new_database() {
        let found = master_key_finding(&keys(DatabaseState::New)).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.text.contains("set CORE_MASTER_KEY"), "{found}");
        let found = master_key_finding(&keys(DatabaseState::Existing)).unwrap();
        assert_eq!(found.severity, Severity::Fine);
        assert!(found.text.contains("cannot be changed"), "{found}");
        let found = master_key_finding(&keys(DatabaseState::Unreadable)).unwrap();
        assert_eq!(found.severity, Severity::Fine);
        assert_eq!(master_key_finding(&keys(DatabaseState::Memory)), None);
        let set = Keys {
            has_master_key: true,
            ..keys(DatabaseState::New)
        };
        assert_eq!(master_key_finding(&set), None);
    }

    #[tokio::test]
    async fn the_state_of_a_database_is_that_of_its_tables() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap();
        let config = load(&["--data", data]);
        assert_eq!(DatabaseState::of(&config).await, DatabaseState::New);
        let migrated = builder(&config).apply_migrations(false, |_| ()).await;
        migrated.unwrap();
        assert_eq!(DatabaseState::of(&config).await, DatabaseState::Existing);
        let damaged = folder.path().join("damaged.sqlite");
        std::fs::write(&damaged, [b'x'; 8_192]).unwrap();
        let url = format!("sqlite:{}", damaged.display());
        let config = load(&["--data", data, "--database-url", &url]);
        assert_eq!(DatabaseState::of(&config).await, DatabaseState::Unreadable);
        let config = load(&["--data", data, "--database-url", "memory:"]);
        assert_eq!(DatabaseState::of(&config).await, DatabaseState::Memory);
    }

    #[test]
    fn a_public_url_must_resolve_and_be_encrypted_unless_it_is_local() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (local, public) = (address("127.0.0.1:80"), address("192.0.2.1:80"));
        for (is_encrypted, outcome, severity, part) in [
            (true, Ok(vec![public]), Severity::Fine, "resolves"),
            (false, Ok(vec![local]), Severity::Fine, "resolves"),
            (
                false,
                Ok(vec![local, public]),
                Severity::Warning,
                "use https",
            ),
            (true, Ok(Vec::new()), Severity::Failure, "no address"),
            (
                true,
                Err("NXDOMAIN".to_owned()),
                Severity::Failure,
                "check DNS",
            ),
        ] {
            let url = "http://iam.example.org";
            let found = lookup_finding("iam_public_url", url, is_encrypted, outcome);
            assert_eq!(found.severity, severity, "{found}");
            assert!(found.text.contains(part), "{found}");
        }
    }

    #[tokio::test]
    async fn a_host_is_looked_up_at_the_port_of_its_url() {
        assert_eq!(
            host_and_port("https://iam.example.org/x"),
            Some(("iam.example.org:443".to_owned(), true))
        );
        let local = "http://127.0.0.1:8081";
        assert_eq!(
            host_and_port(local),
            Some(("127.0.0.1:8081".to_owned(), false))
        );
        let found = address_finding("iam_public_url", local).await;
        assert_eq!(found.severity, Severity::Fine, "{found}");
        let found = address_finding("iam_public_url", "no url").await;
        assert_eq!(found.severity, Severity::Failure, "{found}");
    }

    #[test]
    fn a_public_address_without_a_trusted_proxy_is_a_warning() {
        let public = [
            "--bind",
            "0.0.0.0",
            "--auth-api-key",
            "service-key-of-a-test",
            "--iam-public-url",
            "https://iam.example.org",
        ];
        let found = proxy_finding(&load(&public)).unwrap();
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.text.contains("--trusted-proxies"), "{found}");
        let behind = [&public[..], &["--trusted-proxies", "10.0.0.0/8"]].concat();
        assert_eq!(proxy_finding(&load(&behind)), None);
        assert_eq!(proxy_finding(&load(&[])), None);
    }
}
