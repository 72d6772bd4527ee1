//! Plans and applies the migrations of the database without a suite.

use std::path::Path;
use std::sync::Arc;

use core_storage::cells::HOME_NAME;
use core_storage::sql::migrations::MigrationOptions;

use crate::assemble::{create_private, open_options};
use crate::cells::{CellOptions, Cells};
use crate::open::StoreChoice;
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

pub use core_storage::sql::migration_plan::{MigrationPlan, TableSize};
pub use core_storage::sql::migrations::{
    MigrationError, MigrationEvent, PendingMigration, Release,
};

impl SuiteBuilder {
    /// Returns a builder for each database, with the name of its cell: the home cell first. Each cell has migrations of its
    /// own.
    #[must_use]
    pub fn databases(&self) -> Vec<(String, Self)> {
        let home = Self {
            cells: Cells::default(),
            ..self.clone()
        };
        let cell = |cell: &CellOptions| {
            let database = Self {
                store: StoreChoice::of_cell(cell),
                ..home.clone()
            };
            (cell.name.clone(), database)
        };
        let cells = self.cells.others.iter().map(cell);
        [(HOME_NAME.to_owned(), home.clone())]
            .into_iter()
            .chain(cells)
            .collect()
    }

    /// Returns the migrations that have not run on the database, which is only read. Servers may be using it. Cells are
    /// planned one by one, see [`Self::databases`].
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
    /// reports the progress. Servers of the last release may be using a Postgres database. The folder of a SQLite file is created
    /// if it is missing.
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
        if let Some(folder) = self.store.file().and_then(Path::parent) {
            create_private(folder)?;
        }
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
