//! `platform`: gives a platform its six resources in an environment, one step each.

use super::make::MakeResource;
use crate::provisioning::{JobKind, JobStep};
use crate::registry::{PURPOSES, ResourceType};

pub(in crate::use_case::registry) const NAME: &str = "platform";

/// A step for every resource, named by its type, in the order they are made.
pub(in crate::use_case::registry) const STEPS: [&str; 6] = {
    let mut steps = [""; 6];
    let mut at = 0;
    while at < steps.len() {
        steps[at] = PURPOSES[at].0.as_str();
        at += 1;
    }
    steps
};

/// The steps that make the resources, for the kinds that need them.
pub(super) fn makers() -> [MakeResource; 6] {
    PURPOSES.map(|(resource_type, _)| MakeResource(resource_type))
}

/// The maker of the step with this name.
pub(super) fn maker<'m>(makers: &'m [MakeResource], step: &str) -> Option<&'m dyn JobStep> {
    let named = |m: &&MakeResource| ResourceType::as_str(m.0) == step;
    makers.iter().find(named).map(|m| m as &dyn JobStep)
}

/// The kind.
#[derive(Debug)]
pub(super) struct ProvisionPlatform {
    makers: [MakeResource; 6],
}

impl ProvisionPlatform {
    pub(super) fn new() -> Self {
        Self { makers: makers() }
    }
}

impl JobKind for ProvisionPlatform {
    fn name(&self) -> &'static str {
        NAME
    }

    fn step(&self, name: &str) -> Option<&dyn JobStep> {
        maker(&self.makers, name)
    }
}
