//! Why a suite could not be built.

use core_domain::kernel::StoreError;
use core_http::gateway::ConfigError;
use core_http::kernel::ServiceError;

/// Why a suite could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[from] StoreError),
    /// The store that was asked for is behind a feature of this crate that is not on.
    #[error("built without the feature {0}")]
    FeatureMissing(&'static str),
    /// The data folder cannot be used.
    #[error("the data folder cannot be used")]
    Folder(#[from] std::io::Error),
    /// The local provider cannot be opened.
    #[cfg(feature = "local")]
    #[error("the local provider cannot be opened")]
    Local(#[from] core_local::LocalError),
    /// Cloudflare cannot be worked with.
    #[cfg(feature = "cloudflare")]
    #[error("Cloudflare cannot be worked with")]
    Cloudflare(#[from] core_cloudflare::CloudflareError),
    /// Webhooks cannot be sent.
    #[cfg(feature = "webhooks")]
    #[error("webhooks cannot be sent")]
    Webhooks(#[from] core_webhooks::TlsError),
    /// A setting is not valid.
    #[error("a setting is not valid")]
    Setting(#[from] ConfigError),
    /// A service's table of endpoints makes no sense; a mistake in the suite itself.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Two kinds of jobs cannot be used together.
    #[error(transparent)]
    Kinds(#[from] core_domain::use_case::provisioning::KindError),
    /// The secret file in the data folder is not one of ours.
    #[error("the secret file {0} is damaged; restore it, or remove it and with it every session")]
    Secret(String),
}
