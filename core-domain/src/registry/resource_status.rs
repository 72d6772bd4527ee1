//! The life of a resource.

use crate::kernel::{IllegalMove, Machine, state_machine, text_enum};

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
        /// It was there, and is not any more.
        Lose = "lose": [Active] => Failed, "resource.updated";
        /// It is deleted.
        Delete = "delete": [Pending, Provisioning, Active, Failed] => Deleted, "resource.deleted";
    }
}

impl ResourceEvent {
    /// As [`Machine::between`], of what people may say of a resource: that one is lost only a job finds.
    ///
    /// # Errors
    /// [`IllegalMove`] names the statuses from which the wanted one can be reached.
    pub fn said(from: ResourceStatus, to: ResourceStatus) -> Result<Option<Self>, IllegalMove> {
        if from != to && to == ResourceStatus::Failed {
            return Self::Fail.next(from).map(|_| Some(Self::Fail));
        }
        Self::between(from, to)
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
