//! Chooses the infrastructure provider: the one set on the builder, Cloudflare, or the built-in one.

use std::sync::Arc;

use core_domain::port::{Blobs, Infrastructure};
use core_http::gateway::ConfigError;

#[cfg(feature = "cloudflare")]
use crate::settings::refused_by_cloudflare;
use crate::{SuiteBuilder, SuiteError};

/// Returns the provider that was chosen, or `None` for the built-in one. Cloudflare stores its receipts as blobs; without
/// `blobs` it can only be read.
pub(crate) fn infrastructure(
    builder: &SuiteBuilder,
    blobs: Option<&Arc<dyn Blobs>>,
) -> Result<Option<Arc<dyn Infrastructure>>, SuiteError> {
    match &builder.infrastructure {
        Some(given) => Ok(Some(Arc::clone(given))),
        None => cloudflare(builder, blobs),
    }
}

#[cfg(feature = "cloudflare")]
fn cloudflare(
    builder: &SuiteBuilder,
    blobs: Option<&Arc<dyn Blobs>>,
) -> Result<Option<Arc<dyn Infrastructure>>, SuiteError> {
    let Some(account) = builder.cloudflare.clone() else {
        return Ok(None);
    };
    tracing::info!(
        account_id = account.account_id,
        base_url = account.base_url,
        "infrastructure is created at Cloudflare"
    );
    let options = builder.settings.cloudflare.clone();
    let clock = builder.clock_or_system();
    let cloudflare = core_cloudflare::CloudflareInfrastructure::new(account, options, clock)?;
    Ok(Some(Arc::new(match blobs {
        Some(blobs) => cloudflare.with_receipts(Arc::clone(blobs)),
        None => cloudflare,
    })))
}

#[cfg(not(feature = "cloudflare"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
fn cloudflare(
    _: &SuiteBuilder,
    _: Option<&Arc<dyn Blobs>>,
) -> Result<Option<Arc<dyn Infrastructure>>, SuiteError> {
    Ok(None)
}

impl SuiteBuilder {
    /// Returns whether infrastructure is created on this machine.
    #[cfg(feature = "local")]
    pub(crate) const fn is_local(&self) -> bool {
        #[cfg(feature = "cloudflare")]
        let elsewhere = self.cloudflare.is_some();
        #[cfg(not(feature = "cloudflare"))]
        let elsewhere = false;
        self.infrastructure.is_none() && !elsewhere
    }
}

/// Checks that sites can be served at the addresses in the settings.
#[cfg(feature = "local")]
pub(crate) fn check_sites(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    builder.settings.sites.check(&builder.iam_url)
}

/// Does nothing: without the feature `local` no site is served here.
#[cfg(not(feature = "local"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) const fn check_sites(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}

/// Checks the form of the Cloudflare account, without a request to Cloudflare.
#[cfg(feature = "cloudflare")]
pub(crate) fn check_account(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    let checked = builder
        .cloudflare
        .as_ref()
        .map(core_cloudflare::CloudflareAccount::check);
    checked.transpose().map(drop).map_err(refused_by_cloudflare)
}

/// Does nothing: without the feature `cloudflare` there is no account.
#[cfg(not(feature = "cloudflare"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) fn check_account(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}
