//! Which records a scope lets a use case write.

use crate::kernel::{PlatformId, PlatformOwned};

/// A scope that lets a use case write records of this owner. Implemented by the scopes of this folder alone.
pub trait Covers<Owner>: Sealed + Send + Sync {
    /// The one platform whose records are covered; `None` when that is not the question.
    fn covered_platform(&self) -> Option<&PlatformId>;
}

/// Keeps others from making scopes.
pub trait Sealed {}

/// Declares scopes that cover records of no platform alone.
macro_rules! covers_unowned {
    ($($scope:ty $(, for $grant:ident)?;)+) => {$(
        impl$(<$grant: $crate::kernel::Grant>)? $crate::access::covers::Sealed for $scope {}

        impl$(<$grant: $crate::kernel::Grant>)? $crate::access::covers::Covers<$crate::kernel::Unowned> for $scope {
            fn covered_platform(&self) -> Option<&$crate::kernel::PlatformId> {
                None
            }
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
