//! What opens the repositories of a unit of work.

/// The key to the repositories. It is made in this folder alone, so that there is no way to a record but through a
/// scope, and no way to change one but through [`audited`](super::audited).
#[derive(Debug)]
pub struct RecordKey(());

impl RecordKey {
    pub(super) const fn new() -> Self {
        Self(())
    }

    /// For tests that look into a store, and for those of stores.
    #[cfg(feature = "testing")]
    #[must_use]
    pub const fn for_tests() -> Self {
        Self(())
    }
}
