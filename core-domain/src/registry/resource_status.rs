//! The life of a resource.

use crate::kernel::{state_machine, text_enum};

text_enum! {
    /// Where a resource stands.
    pub enum ResourceStatus {
        /// Entered, not begun.
        Pending = "pending",
        /// Being created.
        Provisioning = "provisioning",
        /// There.
        Active = "active",
        /// Could not be created.
        Failed = "failed",
        /// Gone. Never left.
        Deleted = "deleted",
    }
}

state_machine! {
    /// What happens to a resource. It is entered `pending`.
    pub enum ResourceEvent moves ResourceStatus {
        /// Work on it begins, or begins again.
        Provision = "provision": [Pending, Failed] => Provisioning, "resource.updated";
        /// It is there.
        Activate = "activate": [Provisioning] => Active, "resource.updated";
        /// It could not be created.
        Fail = "fail": [Provisioning] => Failed, "resource.updated";
        /// It is deleted.
        Delete = "delete": [Pending, Provisioning, Active, Failed] => Deleted, "resource.deleted";
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
            events in prop::collection::vec(prop::sample::select(ResourceEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(ResourceStatus::Pending, &events);
        }
    }
}
