//! Features of entities: activating and deactivating them, which jobs do, and what an entity runs with.

mod activate;
mod deactivate;
mod follow;
mod read;
mod rules;

pub use activate::{Activation, activate};
pub(super) use activate::{AskedBy, activate_for, is_there};
pub(super) use deactivate::queue_removal;
pub use deactivate::{Deactivation, deactivate, deactivate_with};
pub(super) use follow::{
    Ending, end_all, end_removed, hand_over, of_stack, provided, record_event,
};
pub(super) use read::find;
pub use read::{get, job_of, list, manifest};
pub(super) use rules::{ensure_none_runs_as, is_worker_of_entity};
