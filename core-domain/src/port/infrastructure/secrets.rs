//! Secrets of workers and sites.

use super::ResourceRef;
use crate::kernel::Secret;

/// Asks for secrets to be set.
#[derive(Clone, Debug)]
pub struct SetSecrets {
    /// The worker, or the pages project.
    pub resource: ResourceRef,
    /// Who it belongs to.
    pub owner: String,
    /// Names and values, at most 100; those of other names stay as they are.
    pub secrets: Vec<(String, Secret)>,
}
