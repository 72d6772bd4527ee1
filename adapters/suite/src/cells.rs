//! Cells: further databases, each with the platforms that are assigned to it. See [`core_storage::cells`].

use core_domain::kernel::Secret;
use core_http::gateway::ConfigError;
use core_storage::cells::{HOME_NAME, check_names};

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
