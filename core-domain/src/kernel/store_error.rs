//! What can go wrong in a store. Public as `port::StoreError`; it stands here because the kernel's errors hold it.

/// What can go wrong in a store, by meaning.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another row holds a value that must be unique. The unit of work goes on.
    #[error("{table}: {index} is taken")]
    Conflict {
        /// The table.
        table: &'static str,
        /// The unique set, as named in the table's description.
        index: &'static str,
    },
    /// The record changed or vanished since it was read. The unit of work goes on.
    #[error("{table}: the record has changed since it was read")]
    Stale {
        /// The table.
        table: &'static str,
    },
    /// The cursor is not one of ours, or of another list. The unit of work goes on.
    #[error("the cursor does not belong to this list")]
    InvalidCursor,
    /// The unit lost a race with another one; run it again from the start.
    #[error("the unit of work must be run again: {0}")]
    Retry(String),
    /// The store cannot be reached.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// A row makes no sense.
    #[error("{table}.{column} of {key} makes no sense")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The key of the row.
        key: String,
    },
    /// Anything else; also every use of a unit of work after an error that ended it.
    #[error("the store failed: {0}")]
    Backend(String),
}
