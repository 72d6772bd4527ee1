//! Moves platforms between the cells of an installation without a suite.

use core_http::gateway::ConfigError;
use core_storage::cells::CellRows;
pub use core_storage::cells::{
    CellState, CellUse, MoveError, MoveOptions, MoveProgress, MoveReport,
};

use crate::assemble::open_options;
use crate::open::{Access, cell_rows};
use crate::secret::InstallationSecret;
use crate::{SuiteBuilder, SuiteError};

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
        let rows = self.open_cells(Access::Direct).await?;
        let moved = rows.move_platform(platform, to, options, on_progress);
        Ok(moved.await?)
    }

    /// Moves all platforms of a cell to another one, one after the other, so that the cell can be removed. Passes the id of each
    /// platform before its move. Returns the number of moves. No server may assign new platforms to the cell.
    ///
    /// # Errors
    /// Those of [`Self::move_platform`]. The platforms before have moved; start again to go on.
    pub async fn move_all_platforms(
        self,
        from: &str,
        to: &str,
        options: &MoveOptions,
        on_progress: &mut (dyn FnMut(MoveProgress) + Send),
        on_start: &mut (dyn FnMut(&str) + Send),
    ) -> Result<u64, MovePlatformError> {
        let rows = self.open_cells(Access::Direct).await?;
        let moved = rows.move_all_platforms(from, to, options, on_progress, on_start);
        Ok(moved.await?)
    }

    /// Returns what each cell has, and whether it can be removed; the first one is home. Nothing is written.
    ///
    /// # Errors
    /// [`MovePlatformError::Open`] if a setting is invalid, if there are no cells, or if a database cannot be opened;
    /// [`MovePlatformError::Move`] if one cannot be read.
    pub async fn cell_states(self) -> Result<Vec<CellState>, MovePlatformError> {
        let rows = self.open_cells(Access::ReadOnly).await?;
        let states = rows.states().await;
        states.map_err(|error| MoveError::Store(error).into())
    }

    /// Cancels a move that has not switched to the other cell. Removes what was copied, and returns the number of rows.
    ///
    /// # Errors
    /// Those of [`Self::move_platform`].
    pub async fn cancel_move(self, platform: &str) -> Result<u64, MovePlatformError> {
        let rows = self.open_cells(Access::Direct).await?;
        Ok(rows.cancel_move(platform).await?)
    }

    async fn open_cells(self, access: Access) -> Result<CellRows, SuiteError> {
        self.check()?;
        if self.cells.is_empty() {
            return Err(SuiteError::Setting(ConfigError {
                setting: "cells",
                problem: "are needed for this command".to_owned(),
            }));
        }
        // Cursors do not leave this process, so any key will do.
        let secret = InstallationSecret::generate(self.entropy.as_ref());
        let options = open_options(&self, &secret);
        cell_rows(self.store, options, access).await
    }
}
