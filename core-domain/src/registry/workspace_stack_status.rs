//! The life of a workspace stack.

use crate::kernel::{state_machine, text_enum};

text_enum! {
    /// Where a workspace stack stands. One that is entered by request is `active`, because nothing is provisioned for it.
    pub enum WorkspaceStackStatus {
        /// Its activation waits for its turn, or is under way.
        Pending = "pending",
        /// There.
        Active = "active",
        /// Being taken down.
        Deactivating = "deactivating",
        /// Taken down; its data may be there still.
        Inactive = "inactive",
        /// The job that moves it has stopped.
        Failed = "failed",
    }
}

state_machine! {
    /// What happens to a workspace stack. One that is activated is created `pending`. An operator may let a failed job go on
    /// (`activate`, `deactivate`) or declare it done (`activated`, `deactivated`).
    pub enum WorkspaceStackEvent moves WorkspaceStackStatus {
        /// It is asked for.
        Activate = "activate": [Inactive, Failed] => Pending, "workspace_stack.activation_queued";
        /// It is there.
        Activated = "activated": [Pending, Failed] => Active, "workspace_stack.activated";
        /// It is to be taken down, or what is left of it.
        Deactivate = "deactivate": [Pending, Active, Deactivating, Inactive, Failed] => Deactivating, "workspace_stack.deactivation_queued";
        /// It is taken down.
        Deactivated = "deactivated": [Deactivating, Failed] => Inactive, "workspace_stack.deactivated";
        /// Its job has stopped.
        Fail = "fail": [Pending, Deactivating] => Failed, "workspace_stack.failed";
        /// The environment it runs in goes, and it with it.
        End = "end": [Pending, Active, Deactivating, Failed] => Inactive, "workspace_stack.ended";
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
            events in prop::collection::vec(prop::sample::select(WorkspaceStackEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(WorkspaceStackStatus::Pending, &events);
        }
    }
}
