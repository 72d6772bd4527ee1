//! Ownership of objects.

use core_domain::kernel::PlatformId;
use core_domain::port::{ProviderError, ProviderObject, ResourceRef};
use core_domain::registry::{ResourceType, is_name_of_platform};

/// The owner of an object that could have an owner mark but has none.
const NO_OWNER: &str = "";

/// Returns whether an object belongs to an owner. The owner must be a platform.
pub(crate) fn belongs_to(found: &ProviderObject, name: &str, owner: &str) -> bool {
    PlatformId::parse(owner).is_some_and(|platform| found.belongs_to(name, &platform))
}

/// Returns the object, or an error if it belongs to another owner.
pub(crate) fn ensure_owned(
    found: ProviderObject,
    name: &str,
    owner: &str,
) -> Result<ProviderObject, ProviderError> {
    if belongs_to(&found, name, owner) {
        Ok(found)
    } else {
        Err(ProviderError::NameTaken(name.to_owned()))
    }
}

/// Returns the owner of an object of a type that supports marks.
pub(crate) fn owner_from_mark(mark: Option<&str>) -> Option<String> {
    Some(mark.unwrap_or(NO_OWNER).to_owned())
}

/// Returns an error if the name does not identify the owner. Databases, namespaces, buckets and queues cannot be
/// marked, so their names must contain the platform.
pub(crate) fn ensure_name_identifies_owner(
    resource: &ResourceRef,
    owner: &str,
) -> Result<(), ProviderError> {
    let is_marked = matches!(
        resource.resource_type,
        ResourceType::Worker | ResourceType::Pages
    );
    let bears = |platform| is_name_of_platform(&resource.name, &platform);
    if is_marked || PlatformId::parse(owner).is_some_and(bears) {
        return Ok(());
    }
    let message = format!("{} is not a name of the platform", resource.name);
    Err(ProviderError::Permanent(message))
}
