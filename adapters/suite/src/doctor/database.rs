//! The checks of the database, its replica and its clock, and of cells.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{Cause, Mode, Store};
use core_storage::cells::{MoveState, UnendedMove};

use super::{CHECK_TIMEOUT, Finding, Severity};
use crate::assemble::open_options;
use crate::open::{Access, OpenOptions, StoreChoice, cell_rows};
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

/// The duration of a read of the database above which pages become slow. A request needs several reads.
const SLOW_READ: Duration = Duration::from_millis(20);

/// The difference of two clocks above which leases and reports become inexact.
const MAX_SKEW: Duration = Duration::from_secs(2);

/// The difference of two clocks above which nodes refuse each other's service tokens.
const FATAL_SKEW: Duration = Duration::from_secs(30);

impl SuiteBuilder {
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
        let options = self.check_options(&secret);
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
    pub(super) async fn all_database_findings(&self) -> Vec<Finding> {
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

    /// Opens all cells together, which shows whether they can commit together, and reads the moves that have not ended.
    /// Returns nothing if a cell is new.
    async fn cell_findings(&self) -> Vec<Finding> {
        for (_, database) in self.databases() {
            let plan = Box::pin(database.plan_migrations()).await;
            if plan.is_ok_and(|plan| plan.applied == 0) {
                return Vec::new();
            }
        }
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = self.check_options(&secret);
        let opened = Box::pin(cell_rows(self.store.clone(), options, Access::ReadOnly)).await;
        let rows = match opened {
            Ok(rows) => rows,
            Err(error) => return vec![Finding::failure("cells", Cause::new(error).to_string())],
        };
        let mut found = vec![Finding::fine("cells", "can commit together")];
        match rows.move_states().await {
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
        let mut found = vec![speed_finding(first, read)];
        if self.store.is_pooled() {
            let text = "units of work go through a pooler, all else to the direct URL; both accept connections";
            found.push(Finding::fine("pooler", text));
        }
        if self.store.is_postgres() && self.clock.is_none() {
            found.push(clock_finding(own, theirs));
        }
        found
    }

    /// Returns the options to open the database, with which a check ends soon.
    fn check_options(&self, secret: &InstallationSecret) -> OpenOptions {
        let mut options = open_options(self, secret);
        let pool = &mut options.pool;
        pool.sqlite_acquire_timeout = pool.sqlite_acquire_timeout.min(CHECK_TIMEOUT);
        pool.postgres_acquire_timeout = pool.postgres_acquire_timeout.min(CHECK_TIMEOUT);
        options
    }
}

fn speed_finding(connecting: Duration, reading: Duration) -> Finding {
    let subject = "database";
    let text = format!("connected in {connecting:.1?}, a read takes {reading:.1?}");
    if reading > SLOW_READ {
        Finding::warning(
            subject,
            format!("{text}; put the database nearer to this machine"),
        )
    } else {
        Finding::fine(subject, text)
    }
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

fn move_finding(state: &MoveState) -> Finding {
    let UnendedMove { platform, from, to } = &state.unended;
    let run = match state.last_run_at {
        Some(at) => format!("the latest run began or switched at {at}"),
        None => "no run has copied anything yet".to_owned(),
    };
    let command = format!("`core-server move-platform {platform} --to {to}`");
    let advice = match state.is_switched {
        true => {
            format!("{to} serves it already, so run {command} again to remove its rows from {from}")
        }
        false => format!(
            "run {command} again, or cancel the move with `core-server move-platform {platform} --cancel`"
        ),
    };
    let text = format!(
        "platform {platform} is moving from {from} to {to}; {run}; unless a process is moving it now, {advice}"
    );
    Finding::warning("cells", text)
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

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_slow_read_is_a_warning() {
        let fast = speed_finding(MILLISECOND, SLOW_READ);
        assert_eq!(fast.severity, Severity::Fine, "{fast}");
        let slow = speed_finding(MILLISECOND, SLOW_READ + MILLISECOND);
        assert_eq!(slow.severity, Severity::Warning, "{slow}");
        assert!(slow.text.contains("nearer"), "{slow}");
    }

    #[test]
    fn a_clock_that_differs_is_a_warning_and_a_failure_when_nodes_refuse_tokens() {
        let now = Timestamp::from_seconds(1_800_000_000);
        for (millis, severity) in [
            (0, Severity::Fine),
            (2_000, Severity::Fine),
            (2_001, Severity::Warning),
            (30_000, Severity::Warning),
            (30_001, Severity::Failure),
        ] {
            let other = Timestamp::from_millis(now.millis() + millis);
            for found in [clock_finding(now, other), clock_finding(other, now)] {
                assert_eq!(found.severity, severity, "{found}");
                assert_eq!(found.text.contains("NTP"), severity != Severity::Fine);
            }
        }
    }

    #[test]
    fn a_move_that_has_not_ended_is_named_with_its_last_run_and_what_to_do() {
        let state = |is_switched, seconds: Option<i64>| MoveState {
            unended: UnendedMove {
                platform: "p-1".to_owned(),
                from: "a".to_owned(),
                to: "b".to_owned(),
            },
            is_switched,
            last_run_at: seconds.map(Timestamp::from_seconds),
        };
        let copying = move_finding(&state(false, Some(1_800_000_000)));
        assert_eq!(copying.severity, Severity::Warning);
        for part in [
            "platform p-1 is moving from a to b",
            "2027-01-15T08:00:00",
            "`core-server move-platform p-1 --to b`",
            "`core-server move-platform p-1 --cancel`",
        ] {
            assert!(copying.text.contains(part), "{part}: {copying}");
        }
        let switched = move_finding(&state(true, Some(1_800_000_000)));
        assert!(switched.text.contains("b serves it already"), "{switched}");
        assert!(!switched.text.contains("--cancel"), "{switched}");
        let recorded = move_finding(&state(false, None));
        assert!(recorded.text.contains("no run has copied"), "{recorded}");
    }

    #[test]
    fn a_database_that_cannot_be_opened_is_explained_by_its_cause() {
        let unavailable = SuiteError::Store(StoreError::unavailable("connection refused"));
        let text = refusal(unavailable);
        assert!(text.contains("connection refused"), "{text}");
        assert!(text.contains("the network and the password"), "{text}");
        let unmigrated = SuiteError::Store(StoreError::backend("no such table"));
        let text = refusal(unmigrated);
        assert!(text.contains("migrates the schema"), "{text}");
    }

    #[tokio::test]
    async fn records_in_memory_are_a_warning_and_a_missing_file_is_one() {
        let found = SuiteBuilder::default().all_database_findings().await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning, "{}", found[0]);
        let folder = tempfile::tempdir().unwrap();
        let builder = SuiteBuilder::default().sqlite(folder.path().join("core.sqlite"));
        let found = builder.all_database_findings().await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].severity, Severity::Warning, "{}", found[0]);
        assert!(found[0].text.contains("does not exist yet"), "{}", found[0]);
    }
}
