//! Cells: further databases, each with the platforms that are assigned to it. See [`core_storage::cells`].

use core_domain::kernel::Secret;
use core_http::gateway::ConfigError;
use core_storage::cells::{CellRows, HOME_NAME, check_names};
pub use core_storage::cells::{MoveError, MoveOptions, MoveProgress, MoveReport};

use crate::assemble::open_options;
use crate::open::{Access, cell_rows};
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

/// The cells of an installation. Every process has the same ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    /// `true` if new platforms are also assigned to the home cell, which is the database of the suite. It always takes them
    /// if no other cell does. Default: `false`.
    pub home_takes_new_platforms: bool,
    /// The cells beside home.
    pub others: Vec<CellOptions>,
}

/// A Postgres database with the platforms that are assigned to it. Its server has `max_prepared_transactions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellOptions {
    /// The name: 1 to 32 of `[a-z0-9-]`. The installation remembers which platforms it has by this name.
    pub name: String,
    /// The URL of the database.
    pub url: Secret,
    /// The URL without a pooler; `None` if `url` is that.
    pub direct_url: Option<Secret>,
    /// The URL of standbys for lists that may be stale; `None` if lists read the primary.
    pub replica_url: Option<Secret>,
    /// `true` if new platforms are assigned to this cell.
    pub takes_new_platforms: bool,
}

impl Cells {
    pub(crate) fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Checks the names.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let names = self.others.iter().map(|cell| cell.name.as_str());
        let checked = check_names([HOME_NAME].into_iter().chain(names));
        checked.map_err(|error| ConfigError {
            setting: "cells",
            problem: error.to_string(),
        })
    }
}

/// The reason why a platform was not moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MovePlatformError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] SuiteError),
    /// The move did not take place, or has not ended.
    #[error(transparent)]
    Move(#[from] MoveError),
}

impl SuiteBuilder {
    /// Moves a platform to another cell, or continues such a move. Servers may be using the installation: the platform stays in
    /// use, and its changes wait for at most about two seconds. Every server must know both cells.
    ///
    /// If the process ends early, start the move again, or [cancel](Self::cancel_move) it. A second process for the same platform
    /// takes over from the first one, which fails.
    ///
    /// # Errors
    /// [`MovePlatformError::Open`] if a setting is invalid, if there are no cells, or if a database cannot be opened;
    /// otherwise see [`MoveError`].
    pub async fn move_platform(
        self,
        platform: &str,
        to: &str,
        options: &MoveOptions,
        on_progress: &mut (dyn FnMut(MoveProgress) + Send),
    ) -> Result<MoveReport, MovePlatformError> {
        let rows = self.open_cells().await?;
        let moved = rows.move_platform(platform, to, options, on_progress);
        Ok(moved.await?)
    }

    /// Cancels a move that has not switched to the other cell. Removes what was copied, and returns the number of rows.
    ///
    /// # Errors
    /// Those of [`Self::move_platform`].
    pub async fn cancel_move(self, platform: &str) -> Result<u64, MovePlatformError> {
        let rows = self.open_cells().await?;
        Ok(rows.cancel_move(platform).await?)
    }

    async fn open_cells(self) -> Result<CellRows, SuiteError> {
        self.check()?;
        if self.cells.is_empty() {
            return Err(SuiteError::Setting(ConfigError {
                setting: "cells",
                problem: "are needed to move a platform".to_owned(),
            }));
        }
        // Cursors do not leave this process, so any key will do.
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(&self, &secret);
        cell_rows(self.store, options, Access::Direct).await
    }
}
