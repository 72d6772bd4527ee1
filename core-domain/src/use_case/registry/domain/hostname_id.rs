//! What is known of a custom domain at the provider.

use crate::access::{PlatformWriter, audited};
use crate::kernel::{Context, CustomDomainId, Result};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainStatus, ProviderName, SslStatus};

/// Keeps where a domain that is not deleted and its certificate stand at the provider, whichever job works on it.
pub(in crate::use_case::registry) async fn record_hostname(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    (cf_hostname_id, ssl_status): (&str, SslStatus),
) -> Result<()> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let is_there = |domain: &CustomDomain| domain.status != CustomDomainStatus::Deleted;
    let Some(seen) = found.filter(|domain| is_there(domain)) else {
        return Ok(());
    };
    let next = CustomDomain {
        cf_hostname_id: ProviderName::parse(cf_hostname_id).ok(),
        ssl_status,
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "domain.updated").await?;
    Ok(())
}

/// Keeps that a domain is not served any more, if it still is what `is_gone` says.
pub(in crate::use_case::registry) async fn forget_hostname(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    is_gone: impl Fn(&CustomDomain) -> bool + Send,
) -> Result<()> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let Some(seen) = found.filter(|domain| is_gone(domain)) else {
        return Ok(());
    };
    let next = CustomDomain {
        cf_hostname_id: None,
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "domain.updated").await?;
    Ok(())
}
