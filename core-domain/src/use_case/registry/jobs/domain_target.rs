//! What a job of a custom domain works for, and whether the domain is still its own.

use serde::{Deserialize, Serialize};

use crate::access::{PlatformAccess, PlatformWriter};
use crate::kernel::{CustomDomainId, PlatformId, PlatformOwned, Result, Stored, Timestamp};
use crate::port::{Mode, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{CustomDomain, PlatformStatus};
use crate::use_case::provisioning::{JobInput, JobKind, StepContext};

/// The domain a job works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct DomainTarget {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) domain_id: CustomDomainId,
}

impl JobInput for DomainTarget {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

impl DomainTarget {
    /// A domain of a platform.
    pub(in crate::use_case::registry) fn of(
        scope: &PlatformAccess,
        domain: &CustomDomainId,
    ) -> Self {
        Self {
            platform_id: scope.id().clone(),
            domain_id: domain.clone(),
        }
    }
}

/// The domain whatever has become of it, unless its platform is gone; and the instant.
pub(super) async fn find_domain<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<(PlatformWriter, Stored<CustomDomain>)>> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(None);
    };
    let domains = platform.records::<CustomDomain>(uow);
    let found = domains.find(&cx.input.domain_id).await?;
    Ok(found.map(|domain| (platform, domain)))
}

/// The domain if the platform is not deleted and the domain is what `is_wanted` says, and the instant.
pub(super) async fn find_wanted<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
    is_wanted: impl Fn(&CustomDomain) -> bool + Send,
) -> Result<(Option<Stored<CustomDomain>>, Timestamp)> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let now = uow.now().await?;
    let found = find_domain(cx, uow.as_mut()).await?;
    let wanted = found.filter(|(platform, domain)| {
        platform.platform().status != PlatformStatus::Deleted && is_wanted(domain)
    });
    Ok((wanted.map(|(_, domain)| domain), now))
}
