//! What came of a write that makes a record only when there is none.

use crate::kernel::Stored;

/// A record that is there now.
#[derive(Clone, Debug, PartialEq)]
pub struct Upserted<R> {
    /// The record.
    pub record: Stored<R>,
    /// Whether it was not there before.
    pub created: bool,
}

impl<R> Upserted<R> {
    pub(super) const fn new(record: Stored<R>) -> Self {
        Self {
            record,
            created: true,
        }
    }

    pub(super) const fn existing(record: Stored<R>) -> Self {
        Self {
            record,
            created: false,
        }
    }
}
