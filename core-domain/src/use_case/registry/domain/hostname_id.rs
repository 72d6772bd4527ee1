//! The id and the certificate of a custom domain at the provider.

use crate::access::{PlatformWriter, audited};
use crate::kernel::{Context, CustomDomainId, Result};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainStatus, ProviderName, SslStatus};

/// Records the id and the certificate's status of a domain at the provider, for any job. A deleted domain does not change.
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

/// Records that the provider does not serve a domain, if `is_gone` still holds for it.
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
