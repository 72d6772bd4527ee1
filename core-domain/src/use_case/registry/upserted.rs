//! The result of a write that creates a record if it does not exist.

use crate::kernel::Stored;

/// A record that was created or already existed.
#[derive(Clone, Debug, PartialEq)]
pub struct Upserted<R> {
    /// The stored record.
    pub record: Stored<R>,
    /// `true` if this call created the record.
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
