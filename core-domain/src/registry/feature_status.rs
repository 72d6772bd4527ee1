//! The life of a feature of an entity.

use crate::kernel::{state_machine, text_enum};

text_enum! {
    /// Where a feature stands.
    pub enum FeatureStatus {
        /// Asked for; its job makes it.
        Pending = "pending",
        /// There.
        Active = "active",
        /// To be removed; its job does it.
        Deactivating = "deactivating",
        /// Gone; may be activated again.
        Inactive = "inactive",
        /// Its job has stopped.
        Failed = "failed",
    }
}

impl FeatureStatus {
    /// Tells whether the feature is there or a job works on it: as long, its entity is not deleted.
    #[must_use]
    pub const fn is_in_use(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Deactivating)
    }
}

state_machine! {
    /// What happens to a feature. It is created `pending`. An operator may let a failed job go on (`activate`,
    /// `deactivate`) or declare it done (`activated`, `deactivated`).
    pub enum FeatureEvent moves FeatureStatus {
        /// It is asked for.
        Activate = "activate": [Inactive, Failed] => Pending, "feature.activation_queued";
        /// It is there.
        Activated = "activated": [Pending, Failed] => Active, "feature.activated";
        /// It is to be removed.
        Deactivate = "deactivate": [Pending, Active, Failed] => Deactivating, "feature.deactivation_queued";
        /// It is removed.
        Deactivated = "deactivated": [Deactivating, Failed] => Inactive, "feature.deactivated";
        /// Its job has stopped.
        Fail = "fail": [Pending, Deactivating] => Failed, "feature.failed";
        /// The place it runs in goes, and it with it.
        End = "end": [Pending, Active, Deactivating, Failed] => Inactive, "feature.ended";
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    proptest! {
        #[test]
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(FeatureEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(FeatureStatus::Pending, &events);
        }
    }
}
