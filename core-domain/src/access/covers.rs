//! Which records a scope lets a use case write.

use crate::kernel::{PlatformId, PlatformOwned};

/// A scope that lets a use case write records of this owner. Implemented by the scopes of this folder alone.
pub trait Covers<Owner>: Sealed + Send + Sync {
    /// The one platform whose records are covered; `None` when that is not the question.
    fn covered_platform(&self) -> Option<&PlatformId>;

    /// The platform whose audit shows changes of records that belong to no platform themselves; `None` if no platform's does.
    /// What people change of their own (sessions, passwords, factors) is written with scopes that have none.
    fn audit_platform(&self) -> Option<&PlatformId> {
        None
    }
}

/// Keeps others from making scopes.
pub trait Sealed {}

/// Declares scopes that cover records of no platform alone. `audited in |scope| ..` says in which platform's audit.
macro_rules! covers_unowned {
    ($($scope:ty $(, for $grant:ident)? $(, audited in $audit_platform:expr)?;)+) => {$(
        impl$(<$grant: $crate::kernel::Grant>)? $crate::access::covers::Sealed for $scope {}

        impl$(<$grant: $crate::kernel::Grant>)? $crate::access::covers::Covers<$crate::kernel::Unowned> for $scope {
            fn covered_platform(&self) -> Option<&$crate::kernel::PlatformId> {
                None
            }

            $(fn audit_platform(&self) -> Option<&$crate::kernel::PlatformId> {
                let of: fn(&Self) -> Option<&$crate::kernel::PlatformId> = $audit_platform;
                of(self)
            })?
        }
    )+};
}
pub(super) use covers_unowned;

/// Both kinds of owner, for scopes on the whole installation.
pub(super) trait CoversEverything: Sealed + Send + Sync {}

impl<S: CoversEverything> Covers<PlatformOwned> for S {
    fn covered_platform(&self) -> Option<&PlatformId> {
        None
    }
}
