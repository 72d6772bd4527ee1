//! Cells: further databases, each with the platforms that are assigned to it. See [`core_storage::cells`].

use std::sync::Arc;

use core_domain::kernel::Secret;
use core_domain::port::Store;
use core_http::gateway::ConfigError;
use core_storage::cells::{CellConfig, CellRows, HOME_NAME, check_names};
use core_storage::{RecordStore, RowStore};

use crate::SuiteError;
use crate::open::{Access, OpenOptions, PostgresUrls, StoreChoice};

/// The cells of an installation. Every process has the same ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    /// Whether new platforms are also assigned to the home cell, which is the database of the suite. It always takes them if
    /// no other cell does. Default: `false`.
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
    /// Whether new platforms are assigned to this cell.
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

impl CellOptions {
    /// Returns the database of the cell.
    pub(crate) fn store(&self) -> StoreChoice {
        StoreChoice::Postgres(PostgresUrls {
            url: self.url.expose().to_owned(),
            direct_url: self.direct_url.as_ref().map(|url| url.expose().to_owned()),
        })
    }
}

/// Opens the store over home and the other cells.
pub(crate) async fn open(
    home: StoreChoice,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn Store>, SuiteError> {
    let cursor_key = options.cursor_key.clone();
    let pool = options.pool;
    let rows = rows(home, options, access).await?;
    let store = RecordStore::new(rows, cursor_key).with_page_bytes(pool.page_bytes);
    Ok(Arc::new(
        store.with_retry_timeout(pool.postgres_retry_timeout),
    ))
}

/// Opens the rows of home and of the other cells.
pub(crate) async fn rows(
    home: StoreChoice,
    mut options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    let cells = std::mem::take(&mut options.cells);
    let entropy = Arc::clone(&options.entropy);
    let mut configs = vec![CellConfig {
        name: HOME_NAME.to_owned(),
        rows: of_database(home, options.clone(), access).await?,
        takes_new_platforms: cells.home_takes_new_platforms,
    }];
    for cell in cells.others {
        options.replica_url.clone_from(&cell.replica_url);
        configs.push(CellConfig {
            rows: of_database(cell.store(), options.clone(), access).await?,
            name: cell.name,
            takes_new_platforms: cell.takes_new_platforms,
        });
    }
    Ok(Arc::new(match access {
        Access::Units | Access::Direct => CellRows::open(configs, entropy).await?,
        Access::ReadOnly => CellRows::open_read_only(configs, entropy).await?,
    }))
}

async fn of_database(
    store: StoreChoice,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    let rows = store.rows_of_database(options, access).await?;
    rows.ok_or_else(|| {
        SuiteError::Setting(ConfigError {
            setting: "cells",
            problem: "need a database of the suite, not a store of the host program".to_owned(),
        })
    })
}
