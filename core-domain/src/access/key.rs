//! The proof that only this module reads and writes records.

/// The key to the repositories. Only this module creates one. Therefore every read of a record goes through a scope,
/// and every change through [`audited`](super::audited) or the functions for changes without an audit entry.
#[derive(Debug)]
pub struct RecordKey(());

impl RecordKey {
    pub(super) const fn new() -> Self {
        Self(())
    }

    /// Creates a key for tests that read a store directly, and for tests of stores.
    #[cfg(feature = "testing")]
    #[must_use]
    pub const fn for_tests() -> Self {
        Self(())
    }
}
