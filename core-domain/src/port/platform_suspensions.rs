//! The suspension state of platforms, for adapters that serve visitors.

use async_trait::async_trait;

use crate::kernel::PlatformId;

/// The suspension state of a platform is unknown: the store failed, and no recent state is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the suspension state of the platform is unknown")]
pub struct SuspensionUnknown;

/// Tells which platforms are suspended. An answer is at most one second older than the store, unless the store fails.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait PlatformSuspensions: Send + Sync + std::fmt::Debug {
    /// Tells whether a platform is suspended. A platform that does not exist is not suspended.
    ///
    /// # Errors
    /// [`SuspensionUnknown`] if the store failed and no recent state is known. Callers then serve nothing.
    async fn is_suspended(&self, platform: &PlatformId) -> Result<bool, SuspensionUnknown>;
}
