//! `platform`: gives a platform its default resources in an environment, one step each.

use super::resource::MakeResource;
use super::target::Target;
use crate::registry::DEFAULT_RESOURCES;
use crate::use_case::provisioning::{JobKind, Steps};

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct ProvisionPlatform;

impl JobKind for ProvisionPlatform {
    const HOOKS: bool = false;
    const NAME: &'static str = "platform";
    type Input = Target;

    fn steps() -> Steps<Self> {
        Steps::new()
            .then_all(DEFAULT_RESOURCES.map(|(resource_type, _)| MakeResource(resource_type)))
    }
}
