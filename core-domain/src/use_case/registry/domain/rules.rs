//! What every use case of custom domains asks.

use crate::access::PlatformAccess;
use crate::kernel::{CustomDomainId, Error, Record, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainStatus};

/// A custom domain of the platform that is not deleted.
pub(super) async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<Stored<CustomDomain>> {
    let found = scope.records::<CustomDomain>(uow).get(domain).await?;
    if found.status == CustomDomainStatus::Deleted {
        return Err(Error::NotFound(CustomDomain::KIND));
    }
    Ok(found)
}
