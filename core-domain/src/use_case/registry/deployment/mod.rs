//! Deployment records: those of the command line's service, which its jobs move, and those that others enter and move.

mod earlier;
mod entered;
mod record;

pub(in crate::use_case) use earlier::{STUCK_AFTER, earlier};
pub use entered::{enter, get, list, update};
pub(super) use record::cancel_all;
pub(in crate::use_case) use record::{
    change, create, find, find_anywhere, key_reused, missing, of_job,
};
