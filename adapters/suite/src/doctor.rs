//! Checks of the surroundings of a suite: the database, the clock, the data folder, uploads, mail, infrastructure, traces
//! and other services.
//!
//! [`SuiteBuilder::diagnose`] changes nothing, apart from a test object in a bucket, so it can run beside a server.

use std::fmt::{Display, Formatter};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{Cause, Infrastructure, Mode, Store};
use core_domain::registry::ResourceType;
use core_http::gateway::{HttpUpstream, Upstream};
use core_http::kernel::{empty_body, read_body};
use core_storage::cells::UnendedMove;
use http::{Request, StatusCode, Uri};
use tokio::time::timeout;

use crate::assemble::open_options;
#[cfg(feature = "s3")]
use crate::blobs::s3_config;
use crate::infrastructure::infrastructure;
use crate::open::{Access, OpenOptions, StoreChoice, cell_rows};
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The subject is as it should be.
    Fine,
    /// The suite works, but an operator should look at it.
    Warning,
    /// The suite does not start, or a part of it fails.
    Failure,
}

/// A finding of a check. Its text says what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject of the check, in one or two words.
    pub subject: &'static str,
    /// The severity of the finding.
    pub severity: Severity,
    /// The finding for an operator, without secrets.
    pub text: String,
}

impl Finding {
    /// Creates a finding that needs no action.
    pub fn fine(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Severity::Fine, text)
    }

    /// Creates a finding that an operator should look at.
    pub fn warning(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Severity::Warning, text)
    }

    /// Creates a finding that prevents the suite, or a part of it, from working.
    pub fn failure(subject: &'static str, text: impl Into<String>) -> Self {
        Self::new(subject, Severity::Failure, text)
    }

    /// Names the cell that the finding is about.
    fn of_cell(self, cell: &str) -> Self {
        Self {
            text: format!("of cell {cell}: {}", self.text),
            ..self
        }
    }

    fn new(subject: &'static str, severity: Severity, text: impl Into<String>) -> Self {
        Self {
            subject,
            severity,
            text: text.into(),
        }
    }
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let mark = match self.severity {
            Severity::Fine => "ok     ",
            Severity::Warning => "WARNING",
            Severity::Failure => "FAILURE",
        };
        write!(f, "{mark} {:14} {}", self.subject, self.text)
    }
}

/// The duration of a read of the database above which pages become slow. A request needs several reads.
const SLOW_READ: Duration = Duration::from_millis(20);

/// The difference of two clocks above which leases and reports become inexact.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// The difference of two clocks above which nodes refuse each other's service tokens.
const FATAL_SKEW: Duration = Duration::from_secs(30);

/// The duration of a durable write of the disk above which every change becomes slow.
const SLOW_WRITE: Duration = Duration::from_millis(50);

/// The free space below which the data folder should be enlarged.
const LITTLE_SPACE: u64 = 1024 * 1024 * 1024;

/// The free space below which writes will soon fail.
const NO_SPACE: u64 = 64 * 1024 * 1024;

/// Maximum time for a connection to another server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time for the requests to a bucket, with repetitions.
#[cfg(feature = "s3")]
const BUCKET_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum size of the response to a readiness check, in bytes.
const MAX_READINESS_BYTES: usize = 16 * 1024;

/// The owner of no object, for a question to the provider that has an empty answer.
const NOBODY: &str = "doctor";

impl SuiteBuilder {
    /// Checks the settings and the surroundings of the suite, and returns a finding for each subject. A server with the
    /// same settings may be running. Nothing is changed, except that a test object is written to a bucket and removed.
    pub async fn diagnose(&self) -> Vec<Finding> {
        let mut found = vec![self.settings_finding()];
        found.extend(Box::pin(self.all_database_findings()).await);
        if let Some(folder) = &self.data_folder {
            found.extend(folder_findings(folder));
        }
        found.extend(self.upload_finding().await);
        found.push(self.mail_finding().await);
        found.push(self.infrastructure_finding().await);
        found.extend(self.trace_finding().await);
        found
    }

    fn settings_finding(&self) -> Finding {
        let subject = "settings";
        if let Err(error) = self.check() {
            return Finding::failure(subject, Cause::new(error).to_string());
        }
        match self.contradictions().as_slice() {
            [] => Finding::fine(subject, "valid"),
            found => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                Finding::warning(subject, found.join("; "))
            }
        }
    }

    async fn database_findings(&self) -> Vec<Finding> {
        let subject = "database";
        let is_missing = |path: &Path| !path.try_exists().unwrap_or(true);
        match &self.store {
            StoreChoice::Memory => {
                let text = "in memory: all records are lost when the process ends";
                return vec![Finding::warning(subject, text)];
            }
            StoreChoice::Sqlite(path) if is_missing(path) => {
                let text = format!(
                    "{} does not exist yet; the server creates it",
                    path.display()
                );
                return vec![Finding::warning(subject, text)];
            }
            _ => {}
        }
        // Cursors do not leave this process, so any key will do.
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(self, &secret);
        match self.store.clone().open_read_only(options.clone()).await {
            Ok(store) => {
                let mut found = self.opened_database(store).await;
                found.extend(self.replica_finding(options).await);
                found
            }
            Err(error) => vec![self.unopened_database(options, error).await],
        }
    }

    /// Checks the database, or those of all cells.
    async fn all_database_findings(&self) -> Vec<Finding> {
        if self.cells.is_empty() {
            return Box::pin(self.database_findings()).await;
        }
        let mut found = Vec::new();
        for (cell, database) in self.databases() {
            let findings = Box::pin(database.database_findings()).await;
            found.extend(findings.into_iter().map(|finding| finding.of_cell(&cell)));
        }
        // Cells without tables cannot be opened together.
        if found
            .iter()
            .all(|finding| finding.severity != Severity::Failure)
        {
            found.extend(self.cell_findings().await);
        }
        found
    }

    /// Opens all cells together, which shows whether they can commit together, and reads the moves that have not ended. Returns
    /// nothing if a cell is new.
    async fn cell_findings(&self) -> Vec<Finding> {
        for (_, database) in self.databases() {
            let plan = Box::pin(database.plan_migrations()).await;
            if plan.is_ok_and(|plan| plan.applied == 0) {
                return Vec::new();
            }
        }
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(self, &secret);
        let opened = Box::pin(cell_rows(self.store.clone(), options, Access::ReadOnly)).await;
        let rows = match opened {
            Ok(rows) => rows,
            Err(error) => return vec![Finding::failure("cells", Cause::new(error).to_string())],
        };
        let mut found = vec![Finding::fine("cells", "can commit together")];
        match rows.unended_moves().await {
            Ok(moves) => found.extend(moves.iter().map(move_finding)),
            Err(error) => found.push(Finding::failure("cells", error.to_string())),
        }
        found
    }

    /// Explains why the database could not be opened. A new database is not a failure.
    async fn unopened_database(&self, options: OpenOptions, error: SuiteError) -> Finding {
        let subject = "database";
        let plan = Box::pin(self.store.clone().plan_migrations(options)).await;
        if plan.is_ok_and(|plan| plan.applied == 0) {
            let text = "has no tables yet; a server creates them when it starts";
            return Finding::warning(subject, text);
        }
        Finding::failure(subject, refusal(error))
    }

    /// Compares the replica with the primary. Returns `None` without a replica.
    async fn replica_finding(&self, options: OpenOptions) -> Option<Finding> {
        let subject = "replica";
        match self.store.clone().replica_lag(options).await {
            Ok(bytes) => {
                let text = format!("follows the primary, {} bytes behind it", bytes?);
                Some(Finding::fine(subject, text))
            }
            Err(error) => {
                let text = format!(
                    "{}; lists read the primary until the replica follows it",
                    Cause::new(error)
                );
                Some(Finding::failure(subject, text))
            }
        }
    }

    async fn opened_database(&self, store: Arc<dyn Store>) -> Vec<Finding> {
        let began = Instant::now();
        let times = async {
            let mut unit = store.begin(Mode::Read).await?;
            let before = self.clock_or_system().now();
            let theirs = unit.now().await?;
            unit.rollback().await;
            Ok::<_, StoreError>((before, theirs))
        };
        let (own, theirs) = match times.await {
            Ok(times) => times,
            Err(error) => return vec![Finding::failure("database", error.to_string())],
        };
        // The first read also opens the connection.
        let first = began.elapsed();
        let began = Instant::now();
        let again = store.begin(Mode::Read).await;
        if let Ok(mut unit) = again {
            let _ = unit.now().await;
            unit.rollback().await;
        }
        let read = began.elapsed();
        let speed = format!("connected in {first:.1?}, a read takes {read:.1?}");
        let speed = if read > SLOW_READ {
            let text = format!("{speed}; put the database nearer to this machine");
            Finding::warning("database", text)
        } else {
            Finding::fine("database", speed)
        };
        let mut found = vec![speed];
        if self.store.is_pooled() {
            let text = "units of work go through a pooler, all else to the direct URL; both accept connections";
            found.push(Finding::fine("pooler", text));
        }
        if self.store.is_postgres() && self.clock.is_none() {
            found.push(clock_finding(own, theirs));
        }
        found
    }

    #[cfg(feature = "smtp")]
    async fn mail_finding(&self) -> Finding {
        let subject = "mail";
        let Some(url) = &self.smtp else {
            return no_mail_server(subject);
        };
        let Ok(url) = url.parse::<core_smtp::SmtpUrl>() else {
            return Finding::failure(subject, "the URL of the mail server is invalid");
        };
        let address = format!("{}:{}", url.host(), url.port());
        match connect(&address).await {
            Ok(took) => Finding::fine(
                subject,
                format!("{address} accepts connections ({took:.0?})"),
            ),
            Err(problem) => {
                let text =
                    format!("{address}: {problem}; check the host, the port and the firewall");
                Finding::failure(subject, text)
            }
        }
    }

    #[cfg(not(feature = "smtp"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    async fn mail_finding(&self) -> Finding {
        no_mail_server("mail")
    }

    /// Writes, reads, lists and removes an object in the bucket for uploads.
    #[cfg(feature = "s3")]
    async fn upload_finding(&self) -> Option<Finding> {
        let subject = "uploads";
        let config = s3_config(self).filter(|_| self.blobs.is_none())?;
        let folder = std::env::temp_dir();
        let blobs = match core_s3::S3Blobs::open(&config, folder, self.clock_or_system()) {
            Ok(blobs) => blobs,
            Err(error) => return Some(Finding::failure(subject, error.to_string())),
        };
        let key = doctor_key(self.entropy.as_ref());
        let began = Instant::now();
        Some(match timeout(BUCKET_TIMEOUT, blobs.check(&key)).await {
            Ok(Ok(())) if config.is_plain() => {
                let text = format!(
                    "{} works, but connections to it are not encrypted; use an https endpoint",
                    config.url
                );
                Finding::warning(subject, text)
            }
            Ok(Ok(())) => {
                let took = began.elapsed();
                let text = format!("{} can be written and read ({took:.0?})", config.url);
                Finding::fine(subject, text)
            }
            Ok(Err(error)) => {
                let advice = error.advice();
                let text = format!("{}: {}; {advice}", config.url, Cause::new(error));
                Finding::failure(subject, text)
            }
            Err(_) => {
                let text = format!("{} does not respond; check the network", config.url);
                Finding::failure(subject, text)
            }
        })
    }

    #[cfg(not(feature = "s3"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    async fn upload_finding(&self) -> Option<Finding> {
        None
    }

    /// Sends a request without spans to the collector of traces.
    #[cfg(feature = "otel")]
    async fn trace_finding(&self) -> Option<Finding> {
        let subject = "traces";
        let mut config = crate::traces::otlp_config(self)?;
        config.options.timeout = config.options.timeout.min(CONNECT_TIMEOUT);
        let began = Instant::now();
        Some(match core_otel::OtlpSink::check_collector(&config).await {
            Ok(()) if config.is_plain() => {
                let text = format!(
                    "{} accepts traces, but connections to it are not encrypted; use an https endpoint",
                    config.endpoint
                );
                Finding::warning(subject, text)
            }
            Ok(()) => {
                let took = began.elapsed();
                let text = format!("{} accepts traces ({took:.0?})", config.endpoint);
                Finding::fine(subject, text)
            }
            Err(problem) => {
                let text = format!(
                    "{}: {problem}; requests go on, but traces are lost: check that the collector runs and receives OTLP \
                     over HTTP (port 4318, not 4317), and the headers",
                    config.endpoint
                );
                Finding::failure(subject, text)
            }
        })
    }

    #[cfg(not(feature = "otel"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    async fn trace_finding(&self) -> Option<Finding> {
        None
    }

    async fn infrastructure_finding(&self) -> Finding {
        let subject = "infrastructure";
        match infrastructure(self, None) {
            Ok(Some(provider)) => provider_finding(subject, provider.as_ref()).await,
            Ok(None) => Finding::fine(subject, "created on this machine, in the data folder"),
            Err(error) => Finding::failure(subject, Cause::new(error).to_string()),
        }
    }
}

/// Returns the key of a test object that nothing else uses.
#[cfg(feature = "s3")]
fn doctor_key(entropy: &dyn core_domain::kernel::Entropy) -> String {
    let mut random = [0; 16];
    entropy.fill(&mut random);
    format!("doctor-{}", core_domain::kernel::hex(&random))
}

/// Asks the provider for the objects of an unknown owner, which shows whether it accepts the credentials.
async fn provider_finding(subject: &'static str, provider: &dyn Infrastructure) -> Finding {
    let asked = provider.list_owned(NOBODY, ResourceType::Kv, None);
    match timeout(CONNECT_TIMEOUT, asked).await {
        Ok(Ok(_)) => Finding::fine(subject, "the provider accepts the credentials"),
        Ok(Err(error)) => {
            let text = format!(
                "{}; check the network, the account and its token",
                Cause::new(error)
            );
            Finding::failure(subject, text)
        }
        Err(_) => Finding::failure(subject, "the provider does not respond; check the network"),
    }
}

fn no_mail_server(subject: &'static str) -> Finding {
    let text = "there is no mail server: mails are only files in the folder outbox";
    Finding::warning(subject, text)
}

fn clock_finding(own: Timestamp, theirs: Timestamp) -> Finding {
    let subject = "clock";
    let skew = Duration::from_millis(own.millis().abs_diff(theirs.millis()));
    let text = format!("differs from the clock of the database by {skew:.1?}");
    if skew > FATAL_SKEW {
        Finding::failure(
            subject,
            format!("{text}; nodes refuse each other's tokens: run NTP"),
        )
    } else if skew > MAX_SKEW {
        Finding::warning(subject, format!("{text}; run NTP on both machines"))
    } else {
        Finding::fine(subject, text)
    }
}

fn move_finding(one: &UnendedMove) -> Finding {
    let UnendedMove { platform, from, to } = one;
    let text = format!(
        "platform {platform} is moving from {from} to {to}; unless a process is moving it now, start the move again, or cancel it"
    );
    Finding::warning("cells", text)
}

fn folder_findings(folder: &Path) -> Vec<Finding> {
    let subject = "data folder";
    let shown = folder.display();
    if !folder.is_dir() {
        let text = format!("{shown} does not exist yet; the server creates it");
        return vec![Finding::warning(subject, text)];
    }
    let mut found = vec![match durable_write(folder) {
        Err(error) => Finding::failure(subject, format!("{shown} cannot be written: {error}")),
        Ok(took) if took > SLOW_WRITE => {
            let text = format!("a durable write to {shown} takes {took:.1?}; use a faster disk");
            Finding::warning(subject, text)
        }
        Ok(took) => Finding::fine(
            subject,
            format!("{shown}, a durable write takes {took:.1?}"),
        ),
    }];
    found.extend(permission_finding(folder));
    found.extend(space_finding(folder));
    found
}

/// Writes a page to a temporary file, waits until it is on the disk, and removes the file.
fn durable_write(folder: &Path) -> std::io::Result<Duration> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let began = Instant::now();
    file.write_all(&[0; 4_096])?;
    file.as_file().sync_all()?;
    Ok(began.elapsed())
}

#[cfg(unix)]
fn permission_finding(folder: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;

    let mode = std::fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    let text = format!(
        "other users of this machine can read {}: chmod 700",
        folder.display()
    );
    (mode & 0o077 != 0).then(|| Finding::warning("permissions", text))
}

#[cfg(not(unix))]
fn permission_finding(_: &Path) -> Option<Finding> {
    None
}

#[cfg(target_os = "linux")]
fn space_finding(folder: &Path) -> Option<Finding> {
    let subject = "disk";
    let found = rustix::fs::statvfs(folder).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let text = format!("{} MiB are free", free / (1024 * 1024));
    Some(if free < NO_SPACE {
        Finding::failure(subject, format!("only {text}: enlarge the disk now"))
    } else if free < LITTLE_SPACE {
        Finding::warning(subject, format!("only {text}: enlarge the disk"))
    } else {
        Finding::fine(subject, text)
    })
}

#[cfg(not(target_os = "linux"))]
fn space_finding(_: &Path) -> Option<Finding> {
    None
}

/// Asks a service at an address such as `http://10.0.0.2:8081` whether it is ready, and returns a finding with what to do.
/// `name` is the name of the service.
pub async fn check_service(name: &str, url: &str) -> Finding {
    let subject = "services";
    let upstream = match HttpUpstream::new(url) {
        Ok(upstream) => upstream,
        Err(error) => return Finding::failure(subject, format!("{name}: {}", error.problem)),
    };
    let mut request = Request::new(empty_body());
    *request.uri_mut() = Uri::from_static("/readyz");
    let began = Instant::now();
    let response = match timeout(CONNECT_TIMEOUT, upstream.send(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let text = format!("{name} at {url}: {error}; start it, or correct its URL");
            return Finding::failure(subject, text);
        }
        Err(_) => {
            let text = format!(
                "{name} at {url} accepts connections, but does not respond; look at its log, or correct its URL"
            );
            return Finding::failure(subject, text);
        }
    };
    let status = response.status();
    let took = began.elapsed();
    let body = read_body(response.into_body(), MAX_READINESS_BYTES).await;
    let body: serde_json::Value = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_default();
    if status.is_success() && body["service"] == name {
        return Finding::fine(subject, format!("{name} is ready ({took:.0?})"));
    }
    let reason = match (status, body["status"].as_str()) {
        (StatusCode::SERVICE_UNAVAILABLE, Some("stopping")) => "is stopping; wait for its restart",
        (StatusCode::SERVICE_UNAVAILABLE, Some("degraded")) => {
            "has no database; run doctor on its machine"
        }
        (StatusCode::SERVICE_UNAVAILABLE, _) => "is not ready; look at its log",
        _ => "is not this service; correct its URL",
    };
    Finding::failure(subject, format!("{name} at {url} {reason} ({status})"))
}

/// Connects to `host:port`, and returns how long it took.
///
/// # Errors
/// The reason why there is no connection, as text.
#[cfg(feature = "smtp")]
async fn connect(address: &str) -> Result<Duration, String> {
    let began = Instant::now();
    let connected = tokio::net::TcpStream::connect(address);
    match timeout(CONNECT_TIMEOUT, connected).await {
        Ok(Ok(_)) => Ok(began.elapsed()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no connection in time".to_owned()),
    }
}

#[cfg(feature = "postgres")]
fn is_pooler_error(error: &StoreError) -> bool {
    let cause = std::error::Error::source(error);
    cause.is_some_and(<dyn std::error::Error>::is::<core_storage::postgres::PoolerError>)
}

#[cfg(not(feature = "postgres"))]
const fn is_pooler_error(_: &StoreError) -> bool {
    false
}

/// Returns what to do about a database that cannot be opened.
fn refusal(error: SuiteError) -> String {
    let advice = match &error {
        // The error says what to do.
        SuiteError::Store(error) if is_pooler_error(error) => "",
        SuiteError::Store(StoreError::Unavailable(_)) => {
            "; check that it runs, and the URL, the network and the password"
        }
        SuiteError::Store(StoreError::Backend(_)) => {
            "; a server of this version creates or migrates the schema when it starts"
        }
        _ => "",
    };
    format!("{}{advice}", Cause::new(error))
}
