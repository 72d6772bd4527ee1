//! Plans and applies the migrations of the database without a suite.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::duration_text;
use core_http::gateway::ConfigError;
use core_storage::sql::migration_plan::MigrationPlan;
use core_storage::sql::migrations::{MigrationEvent, MigrationOptions};
use serde::{Deserialize, Serialize};

use crate::assemble::open_options;
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

pub use core_storage::sql::migration_plan as plan;
pub use core_storage::sql::migrations::{
    MigrationError, MigrationEvent as Event, PendingMigration, Release,
};

/// When the migrations of the database run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MigrationSettings {
    /// Whether pending migrations run when the suite starts. With `false` the suite does not start while migrations are
    /// pending, see [`SuiteBuilder::apply_migrations`]. Default: `true`.
    pub at_start: bool,
    /// How long a statement of a migration waits for the lock of a table on Postgres. Other requests for the table wait
    /// behind it. Then they can run for a second before it is tried again, for up to 10 minutes. Greater than 0.
    /// Default: 2 s.
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

impl SuiteBuilder {
    /// Returns the migrations that have not run on the database, which is only read. Servers may be using it.
    ///
    /// # Errors
    /// [`SuiteError`] if a setting is invalid, if the database cannot be read, or if it belongs to a later release that
    /// this one cannot share it with.
    pub async fn plan_migrations(self) -> Result<MigrationPlan, SuiteError> {
        self.check()?;
        // Cursors do not leave this process, so any key will do.
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(&self, &secret);
        self.store.plan_migrations(options).await
    }

    /// Runs the migrations that have not run on the database, also if `settings.migrations.at_start` is `false`, and
    /// reports the progress. Servers of the last release may be using a Postgres database.
    ///
    /// With `all_servers_stopped`, a migration may remove what servers of earlier releases use.
    ///
    /// # Errors
    /// Those of [`Self::plan_migrations`]; and [`SuiteError::Store`] if a migration would stop servers that may still
    /// run, or if a table stayed locked for ten minutes. The migrations before it have run.
    pub async fn apply_migrations(
        self,
        all_servers_stopped: bool,
        report: impl Fn(&MigrationEvent) + Send + Sync + 'static,
    ) -> Result<(), SuiteError> {
        self.check()?;
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let mut options = open_options(&self, &secret);
        options.migrations = MigrationOptions {
            at_open: true,
            all_servers_stopped,
            listener: Some(Arc::new(report)),
            ..options.migrations
        };
        self.store.open(options).await.map(drop)
    }
}
