//! Objects at the provider.

use serde_json::Value;

use crate::kernel::PlatformId;
use crate::registry::{ResourceType, bears_platform};

/// Names one object at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResourceRef {
    /// What kind of object.
    pub resource_type: ResourceType,
    /// Its deterministic name, derived from platform, environment and purpose; see [`crate::registry::is_provider_name`].
    pub name: String,
}

/// Asks for an object.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateResource {
    /// Kind and name.
    pub resource: ResourceRef,
    /// Who it belongs to; kept with the object, so that a later look can tell ours from foreign.
    pub owner: String,
    /// The same for every attempt of the same step: a second request with it is the same request.
    pub effect_key: String,
    /// Provider settings: for a worker `{mainModule, modules: {path: text}, bindings: [{name, type, resource}], vars}`, where
    /// `type` is a [`ResourceType`] and `resource` the name of an object of the same owner that exists, and `vars` are texts
    /// by name, left out when there are none; for a pages project `bindings` and `vars` of what is served with it, which a
    /// provider of plain sites may leave aside; `{}` otherwise.
    pub config: Value,
}

/// An object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisioned {
    /// The provider's id.
    pub id: String,
    /// Where it can be reached, if anywhere.
    pub url: Option<String>,
    /// Who it belongs to, as given at creation; `None` when the provider keeps no such mark with objects of this type, and
    /// its name tells.
    pub owner: Option<String>,
}

impl Provisioned {
    /// Tells whether an object of this name belongs to a platform: by its mark, else by its name (see
    /// [`bears_platform`]).
    #[must_use]
    pub fn belongs_to(&self, name: &str, platform: &PlatformId) -> bool {
        match &self.owner {
            Some(owner) => owner == platform.as_str(),
            None => bears_platform(name, platform),
        }
    }
}

/// An object that exists, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedObject {
    /// Its name.
    pub name: String,
    /// What else is known.
    pub provisioned: Provisioned,
}

/// Some of the objects of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedObjects {
    /// The objects; may be none though there are more.
    pub objects: Vec<OwnedObject>,
    /// Where to go on; `None` when these were the last.
    pub next: Option<String>,
}
