//! Who makes infrastructure: what the builder was given, Cloudflare, or else what is built in.

use std::sync::Arc;

use core_domain::port::Infrastructure;
use core_http::gateway::ConfigError;

#[cfg(feature = "cloudflare")]
use crate::settings::refused_by_cloudflare;
use crate::{SuiteBuilder, SuiteError};

/// The provider that was chosen; `None` for the one that is built in.
pub(crate) fn infrastructure(
    builder: &SuiteBuilder,
) -> Result<Option<Arc<dyn Infrastructure>>, SuiteError> {
    match &builder.infrastructure {
        Some(given) => Ok(Some(Arc::clone(given))),
        None => cloudflare(builder),
    }
}

#[cfg(feature = "cloudflare")]
fn cloudflare(builder: &SuiteBuilder) -> Result<Option<Arc<dyn Infrastructure>>, SuiteError> {
    let Some(account) = builder.cloudflare.clone() else {
        return Ok(None);
    };
    tracing::info!(
        account_id = account.account_id,
        base_url = account.base_url,
        "infrastructure is made at Cloudflare"
    );
    let options = builder.settings.cloudflare.clone();
    let clock = builder.clock_or_system();
    let cloudflare = core_cloudflare::CloudflareInfrastructure::new(account, options, clock)?;
    Ok(Some(Arc::new(cloudflare)))
}

#[cfg(not(feature = "cloudflare"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
fn cloudflare(_: &SuiteBuilder) -> Result<Option<Arc<dyn Infrastructure>>, SuiteError> {
    Ok(None)
}

impl SuiteBuilder {
    /// Tells whether infrastructure is made on this machine.
    #[cfg(feature = "local")]
    pub(crate) const fn is_local(&self) -> bool {
        #[cfg(feature = "cloudflare")]
        let elsewhere = self.cloudflare.is_some();
        #[cfg(not(feature = "cloudflare"))]
        let elsewhere = false;
        self.infrastructure.is_none() && !elsewhere
    }
}

/// Tells whether sites can have the addresses that the settings give them.
#[cfg(feature = "local")]
pub(crate) fn check_sites(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    builder.settings.sites.check(&builder.iam_url)
}

/// Tells nothing: no site is served here.
#[cfg(not(feature = "local"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) const fn check_sites(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}

/// Tells whether the account is one, without asking for it.
#[cfg(feature = "cloudflare")]
pub(crate) fn check_account(builder: &SuiteBuilder) -> Result<(), ConfigError> {
    let checked = builder
        .cloudflare
        .as_ref()
        .map(core_cloudflare::CloudflareAccount::check);
    checked.transpose().map(drop).map_err(refused_by_cloudflare)
}

/// There is none to check.
#[cfg(not(feature = "cloudflare"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature it can fail")]
pub(crate) fn check_account(_: &SuiteBuilder) -> Result<(), ConfigError> {
    Ok(())
}
