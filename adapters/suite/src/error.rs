//! Errors of building a suite.

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
    /// The chosen store needs a feature of this crate that is not enabled.
    #[error("the store requires the feature {0}, which is not enabled")]
    FeatureMissing(&'static str),
    /// The store has no migrations: it is in memory, or belongs to the host program.
    #[error("the store has no migrations")]
    NoMigrations,
    /// The data folder cannot be created, read or written.
    #[error("the data folder cannot be used")]
    Folder(#[from] std::io::Error),
    /// The local provider cannot be opened.
    #[cfg(feature = "local")]
    #[error("the local provider cannot be opened")]
    Local(#[from] core_local::LocalError),
    /// The Cloudflare provider cannot be created.
    #[cfg(feature = "cloudflare")]
    #[error("the Cloudflare provider cannot be created")]
    Cloudflare(#[from] core_cloudflare::CloudflareError),
    /// The Stripe provider cannot be created.
    #[cfg(feature = "stripe")]
    #[error("the Stripe provider cannot be created")]
    Stripe(#[from] core_stripe::StripeError),
    /// The webhook sender cannot be created.
    #[cfg(feature = "webhooks")]
    #[error("the webhook sender cannot be created")]
    Webhooks(#[from] core_webhooks::TlsError),
    /// A setting is invalid.
    #[error("a setting is invalid")]
    Setting(#[from] ConfigError),
    /// A service's endpoint table is invalid, which is a bug in the suite itself.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Two job kinds conflict with each other.
    #[error(transparent)]
    Kinds(#[from] core_domain::use_case::provisioning::KindError),
    /// The secret file in the data folder is damaged.
    #[error("the secret file {0} is damaged; restore it, or delete it, which ends every session")]
    Secret(String),
}
