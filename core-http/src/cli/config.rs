//! The settings of the service.

use core_domain::cli::Limits as SiteLimits;
use serde::{Deserialize, Serialize};

use super::limiter::UploadLimits;

/// How large sites may be, and how many uploads there are at a time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CliConfig {
    /// Limits of sites. The gateway, the archives and the local provider apply the same limits.
    pub sites: SiteLimits,
    /// How many uploads there are at a time.
    pub uploads: UploadLimits,
}
