//! The settings of the service.

use core_domain::cli::Limits as SiteLimits;
use serde::{Deserialize, Serialize};

use super::limiter::UploadLimits;

/// How large sites may be, and how many uploads there are at a time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CliConfig {
    /// How large sites may be. Of these only the size of uploads is kept here; the others are the archives'.
    pub sites: SiteLimits,
    /// How many uploads there are at a time.
    pub uploads: UploadLimits,
}
