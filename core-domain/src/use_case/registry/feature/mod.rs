//! Features of entities: activating and deactivating them, which jobs do, and what an entity runs with.

mod activate;
mod deactivate;
mod follow;
mod read;
mod rules;

pub use activate::{Activation, activate};
pub use deactivate::{Deactivation, deactivate};
pub(super) use follow::{Ending, end_all, record_event, worker_names};
pub use read::{get, list, manifest};
pub(super) use rules::ensure_none_runs_as;
