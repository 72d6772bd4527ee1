//! The states of a key.

use crate::kernel::{state_machine, text_enum};

text_enum! {
    /// Whether a key is accepted, as far as its owner decides.
    pub enum ApiKeyStatus {
        /// It is.
        Active = "active",
        /// Not until it is enabled again.
        Disabled = "disabled",
        /// Never again. It is kept for a while, so that who still presents it learns why it is refused.
        Revoked = "revoked",
    }
}

state_machine! {
    /// What happens to a key. It is created `active`.
    pub enum ApiKeyEvent moves ApiKeyStatus {
        /// Its owner takes it out of use.
        Disable = "api_key.disabled": [Active] => Disabled;
        /// Its owner takes it into use again.
        Enable = "api_key.enabled": [Disabled] => Active;
        /// Its owner deletes it.
        Revoke = "api_key.deleted": [Active, Disabled] => Revoked;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;

    proptest! {
        #[test]
        fn only_the_moves_of_the_table_are_made(events in prop::collection::vec(any::<ApiKeyEvent>(), 0..12)) {
            assert_only_table_moves(ApiKeyStatus::Active, &events);
        }
    }
}
