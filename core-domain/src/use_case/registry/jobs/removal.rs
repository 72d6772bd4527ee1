//! Removing objects of a platform with their entries.

use serde::{Deserialize, Serialize};

use crate::access::PlatformWriter;
use crate::kernel::{Context, PlatformId, Result, Stored, Timestamp};
use crate::port::{ProviderError, ResourceRef, UnitOfWork};
use crate::registry::Resource;
use crate::use_case::provisioning::{JobKind, StepContext, StepError};
use crate::use_case::registry::{dns, resource};

/// What the removal of some objects leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemovedObjects {
    /// What was entered after this instant is not covered.
    pub(super) as_of: Timestamp,
    /// How many names were removed.
    pub(super) names: usize,
    /// How many of them belonged to somebody else, and stay.
    pub(super) foreign: usize,
}

/// Removes what entries up to an instant stand for.
pub(super) async fn remove_objects<K: JobKind>(
    cx: &StepContext<'_, K>,
    platform: &PlatformId,
    entries: &[Stored<Resource>],
    as_of: Timestamp,
) -> Result<RemovedObjects, StepError> {
    let mut foreign = 0;
    for entry in entries {
        cx.guard().await?;
        let object = ResourceRef {
            resource_type: entry.resource_type,
            name: entry.cf_name.to_string(),
        };
        foreign += usize::from(!remove_if_owned(cx, platform, &object).await?);
    }
    Ok(RemovedObjects {
        as_of,
        names: entries.len(),
        foreign,
    })
}

/// Removes an object, unless it belongs to somebody else; tells whether it does not.
pub(super) async fn remove_if_owned<K: JobKind>(
    cx: &StepContext<'_, K>,
    platform: &PlatformId,
    object: &ResourceRef,
) -> Result<bool, StepError> {
    match cx.infrastructure.remove(object, platform.as_str()).await {
        Err(ProviderError::NameTaken(_)) => Ok(false),
        outcome => Ok(outcome.map(|()| true)?),
    }
}

/// Deletes the entries of what was removed, with the DNS records that lead to it.
pub(super) async fn delete_entries(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entries: Vec<Stored<Resource>>,
) -> Result<()> {
    for entry in entries {
        delete_entry(cx, platform, uow, &entry).await?;
    }
    Ok(())
}

/// Deletes the entry of what was removed, with the DNS records that lead to it.
pub(super) async fn delete_entry(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entry: &Stored<Resource>,
) -> Result<()> {
    dns::delete_leading_to(cx, platform, uow, &entry.id).await?;
    resource::soft_delete(cx, platform, uow, entry).await
}
