//! Settings of the migrations of the database.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::duration_text;
use core_http::gateway::ConfigError;
use core_storage::sql::migrations::{MigrationEvent, MigrationOptions};
use serde::{Deserialize, Serialize};

/// When the migrations of the database run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MigrationSettings {
    /// Pending migrations run when the suite starts if this is `true`. Otherwise the suite does not start while migrations are
    /// pending, see [`SuiteBuilder::apply_migrations`](crate::SuiteBuilder::apply_migrations). Default: `true`.
    pub at_start: bool,
    /// How long a statement of a migration waits for the lock of a table on Postgres. Other requests for the table wait
    /// behind it. Then they can run for a second before it is tried again, for up to 10 minutes. It should be shorter than
    /// the server's `deadlock_timeout` (1 s), so that a deadlock ends an attempt of the migration and not a request. At
    /// least 1 ms. Default: 800 ms.
    #[serde(with = "duration_text")]
    pub lock_timeout: Duration,
}

impl Default for MigrationSettings {
    fn default() -> Self {
        Self {
            at_start: true,
            lock_timeout: MigrationOptions::default().lock_timeout,
        }
    }
}

impl MigrationSettings {
    /// Checks that the lock timeout has a whole millisecond.
    ///
    /// # Errors
    /// [`ConfigError`] names the option.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.lock_timeout.as_millis() > 0 {
            return Ok(());
        }
        Err(ConfigError {
            setting: "migrations.lock_timeout",
            problem: "must be at least 1 ms".to_owned(),
        })
    }

    /// Returns the options of a store whose migrations are logged.
    pub(crate) fn options(self) -> MigrationOptions {
        MigrationOptions {
            at_open: self.at_start,
            lock_timeout: self.lock_timeout,
            listener: Some(Arc::new(log)),
            ..MigrationOptions::default()
        }
    }
}

fn log(event: &MigrationEvent) {
    match event {
        MigrationEvent::Ran(name) => tracing::info!(migration = name, "a migration has run"),
        MigrationEvent::BuildsIndexes(name) => {
            tracing::info!(migration = name, "a migration builds indexes");
        }
        MigrationEvent::Waits(cause) => {
            tracing::warn!(cause, "a migration waits for the lock of a table");
        }
    }
}
