//! Lookup of the objects to which scripts and sites are bound.

use core_domain::port::ProviderError;
use core_domain::registry::ResourceType;

use crate::binding::{Binding, BindingTarget};
use crate::client::Client;
use crate::ownership::belongs_to;
use crate::worker::script;
use crate::{d1, kv, queue, r2};

/// Looks up the targets of all bindings. Returns them with the names of the bindings.
pub(crate) async fn resolve(
    client: &Client,
    bindings: &[Binding],
    owner: &str,
) -> Result<Vec<(String, BindingTarget)>, ProviderError> {
    let mut resolved = Vec::with_capacity(bindings.len());
    for binding in bindings {
        let bound_to = find(client, binding, owner).await?;
        resolved.push((binding.name.clone(), bound_to));
    }
    Ok(resolved)
}

async fn find(
    client: &Client,
    binding: &Binding,
    owner: &str,
) -> Result<BindingTarget, ProviderError> {
    let target = binding.resource.as_str();
    let found = match binding.resource_type {
        ResourceType::D1 => d1::find(client, target).await?,
        ResourceType::Kv => kv::find(client, target).await?,
        ResourceType::R2 => r2::find(client, target).await?,
        ResourceType::Queue => queue::find(client, target).await?,
        ResourceType::Worker => script::find(client, target).await?,
        ResourceType::Pages => None,
    };
    // An object of another owner is indistinguishable from a missing one.
    let found = found.filter(|found| belongs_to(found, target, owner));
    let missing = || {
        ProviderError::Permanent(format!(
            "the binding {} refers to {} {target}, which does not exist",
            binding.name, binding.resource_type
        ))
    };
    let id = found.ok_or_else(missing)?.id;
    let name = target.to_owned();
    Ok(match binding.resource_type {
        ResourceType::D1 => BindingTarget::D1 { id },
        ResourceType::Kv => BindingTarget::Kv { id },
        ResourceType::R2 => BindingTarget::R2 { bucket: name },
        ResourceType::Queue => BindingTarget::Queue { queue: name },
        ResourceType::Worker => BindingTarget::Worker { service: name },
        ResourceType::Pages => return Err(missing()),
    })
}
