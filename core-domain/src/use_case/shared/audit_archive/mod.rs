//! Retention of the audit log. Each month that has passed its retention is exported to a blob, recorded and signed. Then
//! its entries, seals and checkpoints are removed in slices.
//!
//! The steps are repeatable, so a process may crash between any two of them:
//!
//! 1. The links of the month are checked and written to a staged blob.
//! 2. Every chain gets a checkpoint of its last archived link. A verification of the remaining chain starts there.
//! 3. The blob is stored. Its key depends on its content.
//! 4. The signed record is inserted. From now on, verifications start after the archive, and databases allow the removal.
//! 5. Slices are removed, each together with the totals of its chains.

mod base;
mod export;
mod removal;

pub(in crate::use_case) use base::{ChainBase, chain_base, newest_archive};
pub use export::archive_next_month;
pub use removal::remove_archived;
