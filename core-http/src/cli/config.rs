//! The configuration of the CLI service.

use core_domain::cli::SiteLimits;
use serde::{Deserialize, Serialize};

use super::limiter::UploadLimits;

/// The configuration of the CLI service: limits on the size of sites and on concurrent uploads.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CliConfig {
    /// Limits on the size of sites. The gateway, the archive reader and the local provider apply the same limits.
    pub sites: SiteLimits,
    /// Limits on concurrent uploads.
    pub uploads: UploadLimits,
}
