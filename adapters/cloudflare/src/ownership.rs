//! Whose an object is.

use core_domain::kernel::PlatformId;
use core_domain::port::{ProviderError, Provisioned, ResourceRef};
use core_domain::registry::{ResourceType, bears_platform};

/// The owner of an object that could have a mark, and has none of ours.
const NOBODY: &str = "";

/// Tells whether an object is an owner's, who is a platform.
pub(crate) fn belongs_to(found: &Provisioned, name: &str, owner: &str) -> bool {
    PlatformId::parse(owner).is_some_and(|platform| found.belongs_to(name, &platform))
}

/// The object, unless it is another owner's.
pub(crate) fn ensure_owned(
    found: Provisioned,
    name: &str,
    owner: &str,
) -> Result<Provisioned, ProviderError> {
    if belongs_to(&found, name, owner) {
        Ok(found)
    } else {
        Err(ProviderError::NameTaken(name.to_owned()))
    }
}

/// The owner of an object of a type that is marked.
pub(crate) fn of_mark(mark: Option<&str>) -> Option<String> {
    Some(mark.unwrap_or(NOBODY).to_owned())
}

/// Refuses a name that nobody could tell as the owner's afterwards: databases, namespaces, buckets and queues take no mark.
pub(crate) fn ensure_recognisable(
    resource: &ResourceRef,
    owner: &str,
) -> Result<(), ProviderError> {
    let is_marked = matches!(
        resource.resource_type,
        ResourceType::Worker | ResourceType::Pages
    );
    let bears = |platform| bears_platform(&resource.name, &platform);
    if is_marked || PlatformId::parse(owner).is_some_and(bears) {
        return Ok(());
    }
    let message = format!("{} is not a name of the platform's", resource.name);
    Err(ProviderError::Permanent(message))
}
