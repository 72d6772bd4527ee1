//! The cells of a store, as all of its units of work share them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use core_domain::kernel::Entropy;
use core_domain::port::{CellState, PoolState};
use sha2::{Digest, Sha256};
use tokio::sync::OwnedMutexGuard;

use super::availability::Availability;
use super::config::{CellConfig, HOME, HOME_NAME};
use super::directory::Directory;
use crate::row_store::RowStore;

/// The cells, and the state that all units of work share.
#[derive(Debug)]
pub(super) struct CellSet {
    /// The cells; the first one is home.
    pub(super) configs: Vec<CellConfig>,
    pub(super) directory: Directory,
    pub(super) availability: Availability,
    /// The names of the cells, once they were asked for.
    names: OnceLock<Vec<&'static str>>,
    /// The names of the pools of each cell, once they were asked for.
    pool_names: Vec<OnceLock<Vec<&'static str>>>,
    /// The random name of the installation, which is part of the names of prepared units.
    pub(super) installation: String,
    pub(super) entropy: Arc<dyn Entropy>,
    /// Taken by each write unit, if a database has only one writer: units that wait for each other's databases would
    /// never end.
    pub(super) turn: Option<Arc<tokio::sync::Mutex<()>>>,
    /// `true` if platforms that are not in the directory are spread over the cells, instead of being at home.
    pub(super) spreads_unknown: AtomicBool,
}

impl CellSet {
    /// Creates the set. `installation` is the random name of the installation.
    pub(super) fn of(
        configs: Vec<CellConfig>,
        installation: String,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let has_one_writer = configs.iter().any(|cell| cell.rows.has_one_writer());
        Self {
            directory: Directory::of(&configs),
            availability: Availability::of(configs.len()),
            names: OnceLock::new(),
            pool_names: configs.iter().map(|_| OnceLock::new()).collect(),
            installation,
            entropy,
            turn: has_one_writer.then(Arc::default),
            spreads_unknown: AtomicBool::new(false),
            configs,
        }
    }

    /// Waits for the turn of a write unit, if a database has only one writer.
    pub(super) async fn take_turn(&self) -> Option<OwnedMutexGuard<()>> {
        match &self.turn {
            Some(turn) => Some(Arc::clone(turn).lock_owned().await),
            None => None,
        }
    }

    /// Returns the current use of the pools of all cells. The names of those of home are as without cells; the others start with
    /// the name of their cell.
    pub(super) fn pools(&self) -> Vec<PoolState> {
        let mut all = Vec::new();
        for (cell, names) in self.configs.iter().zip(&self.pool_names) {
            let pools = cell.rows.pools();
            // A cell that could not be reached yet has none.
            if pools.is_empty() {
                continue;
            }
            let names = names.get_or_init(|| pool_names(cell, &pools));
            let named = |(name, pool): (&&'static str, PoolState)| PoolState { name, ..pool };
            all.extend(names.iter().zip(pools).map(named));
        }
        all
    }

    /// Returns the state of each cell except home.
    pub(super) fn states(&self) -> Vec<CellState> {
        let names = self.configs.iter().map(|cell| static_label(&cell.name));
        let names = self.names.get_or_init(|| names.collect());
        let others = names.iter().enumerate().skip(HOME + 1);
        let state = |(cell, name): (usize, &&'static str)| CellState {
            name,
            is_reached: !self.availability.is_away(cell),
        };
        others.map(state).collect()
    }

    /// Returns the database of a cell.
    pub(super) fn rows(&self, cell: usize) -> &dyn RowStore {
        self.configs[cell].rows.as_ref()
    }

    /// Returns the cell of a platform that is not in the directory.
    pub(super) fn cell_of_unknown(&self, platform: &str) -> usize {
        match self.spreads_unknown.load(Ordering::Relaxed) {
            true => choose(&self.taking_new(), platform),
            false => HOME,
        }
    }

    /// Returns the cell for a new platform. It depends only on the id and on the cells that take new platforms and can be
    /// reached.
    pub(super) fn cell_for_new(&self, platform: &str) -> usize {
        let taking = self.taking_new();
        let reached = taking.iter().copied();
        let reached: Vec<usize> = reached
            .filter(|cell| !self.availability.is_away(*cell))
            .collect();
        match reached.is_empty() {
            true => choose(&taking, platform),
            false => choose(&reached, platform),
        }
    }

    /// Returns the cells that take new platforms.
    fn taking_new(&self) -> Vec<usize> {
        let cells = self.configs.iter().zip(0..);
        let taking = cells.filter(|(cell, _)| cell.takes_new_platforms);
        taking.map(|(_, index)| index).collect()
    }
}

/// Chooses one of the cells by the hash of the platform's id. Returns home if there is none.
fn choose(cells: &[usize], platform: &str) -> usize {
    let hash = Sha256::digest(platform.as_bytes());
    let number = hash
        .iter()
        .take(4)
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let chosen = cells.get(number % cells.len().max(1));
    chosen.copied().unwrap_or(HOME)
}

/// Returns the names of the pools of a cell.
fn pool_names(cell: &CellConfig, pools: &[PoolState]) -> Vec<&'static str> {
    let name = |pool: &PoolState| match cell.name == HOME_NAME {
        true => pool.name,
        false => static_label(&format!("{}-{}", cell.name, pool.name)),
    };
    pools.iter().map(name).collect()
}

/// Returns a label of metrics, which lives as long as the process.
fn static_label(label: &str) -> &'static str {
    label.to_owned().leak()
}
