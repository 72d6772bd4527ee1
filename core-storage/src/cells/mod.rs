//! One store over several databases, so that an installation grows past one of them.
//!
//! A *cell* is a database with the platforms that are assigned to it: their registry, jobs, audit log and usage. The *home
//! cell* has everything that belongs to several platforms or is found without one: accounts, access, money, the catalogue
//! of stacks, and the directory of platforms. The home cell can have platforms as well. The file `place` says where the rows of
//! each table are.
//!
//! Use cases and services do not know cells. A unit of work opens a database when it first uses it, and most units use one.
//! A query that names a platform goes to its cell. Any other query goes to all cells, and its rows are merged in the order
//! of the query, so lists, cursors and counts are those of one store.
//!
//! # Guarantees
//! - A unit that changes several databases changes all of them or none, also if this process or a database fails in
//!   between. The changes are [prepared](crate::RowTx::prepare) in all databases but home. Then the commit at home decides, and
//!   [`CellRows::end_abandoned`] carries the decision out if the process could not. Until then, other units do not see the
//!   changes that are prepared.
//! - A value that is unique in the installation, such as the slug of a platform, is unique over all cells.
//! - While a cell cannot be reached, only what needs it fails: its platforms, organizations that have platforms there, and
//!   queries over all platforms. What waits for work [leaves it out](crate::Select::skips_unreachable).
//! - Units that use the same database behave as in a single store. Over several databases, a read unit does not see one
//!   common state, and concurrent write units can each decide on what the other changes in another database.
//! - The seals of the audit log have one order over all cells. A reader that knows its end, from home, sees all seals before
//!   it: it waits for commits that are decided and have not reached their cells. If a process died in such a commit, this
//!   takes up to fifteen seconds, in which readers of several cells get an error.
//!
//! # Limits
//! A platform can be [moved](CellRows::move_platform) to another cell while it is in use. A cell that is
//! [not used](CellState::uses) can be removed.
//!
//! Every process of the installation has the same cells. Platforms that were created without cells belong to home. On
//! Postgres, every cell but home needs `max_prepared_transactions`. SQLite cannot prepare units, so it can be home only.

mod availability;
mod backfill;
mod cell_set;
mod commit;
mod config;
mod directory;
mod enroll;
mod hidden;
mod hints;
mod inventory;
mod merge;
mod move_platform;
mod place;
mod recording;
mod route;
mod rows;
pub(crate) mod tables;
mod transfer;
mod unique_values;
mod unit;

pub use config::{CellConfig, HOME_NAME, check_names};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use directory::ensure_names_cover;
pub use inventory::{CellState, CellUse, MoveState};
pub use move_platform::{MoveError, MoveOptions, MoveProgress, MoveReport, UnendedMove};
pub use rows::CellRows;
