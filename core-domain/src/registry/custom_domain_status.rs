//! The life of a custom domain.

use crate::kernel::{state_machine, text_enum};

text_enum! {
    /// Where a custom domain stands.
    pub enum CustomDomainStatus {
        /// Entered; its DNS records were not looked up yet.
        Pending = "pending",
        /// Its DNS records are looked up again and again, and some are missing.
        Verifying = "verifying",
        /// Its DNS records were found.
        Active = "active",
        /// Given up.
        Failed = "failed",
        /// Gone. Never left.
        Deleted = "deleted",
    }
}

impl CustomDomainStatus {
    /// The statuses of a domain whose DNS records are looked up.
    pub const UNVERIFIED: &'static [Self] = &[Self::Pending, Self::Verifying];
}

text_enum! {
    /// Where the certificate of a custom domain stands.
    pub enum SslStatus {
        /// Whose domain it is is not proved yet.
        PendingValidation = "pending_validation",
        /// To be issued.
        PendingIssuance = "pending_issuance",
        /// Issued, not in use yet.
        PendingDeployment = "pending_deployment",
        /// In use.
        Active = "active",
        /// Too old.
        Expired = "expired",
        /// There will be none.
        Failed = "failed",
    }
}

impl SslStatus {
    /// Whether it is reached only after it was proved whose domain it is, and so takes an operator to say.
    #[must_use]
    pub const fn follows_proof(self) -> bool {
        !matches!(self, Self::PendingValidation | Self::Failed)
    }
}

state_machine! {
    /// What happens to a custom domain. It is created `pending`.
    pub enum CustomDomainEvent moves CustomDomainStatus {
        /// Its DNS records were looked up, and some are missing.
        Check = "check": [Pending] => Verifying, "domain.checked";
        /// All are there, or somebody says so.
        Activate = "activate": [Pending, Verifying] => Active, "domain.activated";
        /// It is given up.
        Fail = "fail": [Pending, Verifying, Active] => Failed, "domain.failed";
        /// It is verified from the beginning.
        Restart = "restart": [Failed] => Pending, "domain.restarted";
        /// It is deleted.
        Delete = "delete": [Pending, Verifying, Active, Failed] => Deleted, "domain.deleted";
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
            events in prop::collection::vec(prop::sample::select(CustomDomainEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(CustomDomainStatus::Pending, &events);
        }
    }
}
