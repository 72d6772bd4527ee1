//! Refuses requests to the sites and workers of suspended platforms.

use std::sync::Arc;

use core_domain::kernel::PlatformId;
use core_domain::port::{PlatformSuspensions, SuspensionUnknown};
use http::StatusCode;

/// The reason for refusing a visitor. Its text is the page that the visitor sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessRefusal {
    /// The platform is suspended.
    #[error("This site is suspended.")]
    Suspended,
    /// The platform may be suspended: its state is unknown.
    #[error("This site is not available at the moment.")]
    Unknown,
}

impl AccessRefusal {
    /// Returns the status of the response.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Suspended => StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS,
            Self::Unknown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// Refuses visitors of suspended platforms. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct SuspensionGate(Option<Arc<dyn PlatformSuspensions>>);

impl SuspensionGate {
    pub(crate) fn new(suspensions: Option<Arc<dyn PlatformSuspensions>>) -> Self {
        Self(suspensions)
    }

    /// Returns whether suspensions are checked at all.
    pub(crate) const fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Checks whether the owner of an object is a suspended platform. An owner that is not a platform id is never
    /// suspended.
    pub(crate) async fn check(&self, owner: &str) -> Result<(), AccessRefusal> {
        let (Some(suspensions), Some(platform)) = (&self.0, PlatformId::parse(owner)) else {
            return Ok(());
        };
        match suspensions.is_suspended(&platform).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(AccessRefusal::Suspended),
            Err(SuspensionUnknown) => Err(AccessRefusal::Unknown),
        }
    }
}
