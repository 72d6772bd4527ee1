//! The registry: platforms, entities, infrastructure resources, deployment records, lifecycle and audit reads.

mod resource;

pub use resource::ResourceType;
