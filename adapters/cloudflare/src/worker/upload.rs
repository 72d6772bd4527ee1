//! Uploading scripts.

use bytes::Bytes;
use core_domain::port::{Cause, CreateResource, ProviderError, Provisioned};
use core_domain::registry::ResourceType;
use http::Method;
use serde_json::Value;

use super::config::{Binding, WorkerConfig};
use super::metadata::{BoundTo, Metadata, binding_json};
use super::script::{self, PATH};
use crate::client::Client;
use crate::multipart::{Form, boundary};
use crate::ownership::{belongs_to, ensure_owned, of_mark};
use crate::{d1, kv, queue, r2};

/// Puts the script up under a name that is free or the owner's. The API replaces whatever has the name, so that is looked
/// at first. Uploading the same script again changes nothing but its version.
pub(crate) async fn upload(
    client: &Client,
    request: &CreateResource,
) -> Result<Provisioned, ProviderError> {
    let (name, owner) = (&request.resource.name, &request.owner);
    let worker = WorkerConfig::parse(&request.config)?;
    if let Some(found) = script::find(client, name).await? {
        ensure_owned(found, name, owner)?;
    }
    let mut bindings = Vec::new();
    for binding in &worker.bindings {
        bindings.push(resolve_binding(client, binding, owner).await?);
    }
    let (content_type, body) = form(client, &worker, bindings, owner)?;
    let call = client.call(Method::PUT, "worker.upload", &[&PATH[..], &[name]].concat());
    let call = call
        .query("excludeScript", true)
        .query("bindings_inherit", "strict");
    client.run(call.body(content_type, body).upload()).await?;
    Ok(Provisioned {
        id: name.clone(),
        url: None,
        owner: of_mark(Some(owner)),
    })
}

fn form(
    client: &Client,
    worker: &WorkerConfig,
    bindings: Vec<Value>,
    owner: &str,
) -> Result<(String, Bytes), ProviderError> {
    let date = &client.options().compatibility_date;
    let metadata = Metadata::new(worker.main_module.clone(), date, bindings, owner);
    let metadata = serde_json::to_string(&metadata)
        .map_err(|error| ProviderError::Transient(Cause::new(error)))?;
    let texts = worker.modules.values().map(String::as_bytes);
    let boundary = boundary([metadata.as_bytes()].into_iter().chain(texts));
    let mut form = Form::new(boundary).text("metadata", &metadata);
    for (path, text) in &worker.modules {
        form = form.file(path, module_type(path), text.as_bytes());
    }
    Ok(form.finish())
}

/// What a module is, by the end of its name.
fn module_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js" | "mjs") => "application/javascript+module",
        Some("cjs") => "application/javascript",
        Some("json") => "application/json",
        Some("py") => "text/x-python",
        _ => "text/plain",
    }
}

/// The binding as the API wants it: some objects by their ids.
async fn resolve_binding(
    client: &Client,
    binding: &Binding,
    owner: &str,
) -> Result<Value, ProviderError> {
    let target = binding.resource.as_str();
    let found = match binding.resource_type {
        ResourceType::D1 => d1::find(client, target).await?,
        ResourceType::Kv => kv::find(client, target).await?,
        ResourceType::R2 => r2::find(client, target).await?,
        ResourceType::Queue => queue::find(client, target).await?,
        ResourceType::Worker => script::find(client, target).await?,
        ResourceType::Pages => None,
    };
    // Another owner's object is not told from one that does not exist.
    let found = found.filter(|found| belongs_to(found, target, owner));
    let missing = || {
        ProviderError::Permanent(format!(
            "the binding {} leads to {} {target}, which does not exist",
            binding.name, binding.resource_type
        ))
    };
    let found = found.ok_or_else(missing)?;
    let kind = match binding.resource_type {
        ResourceType::D1 => BoundTo::D1 { id: &found.id },
        ResourceType::Kv => BoundTo::Kv { id: &found.id },
        ResourceType::R2 => BoundTo::R2 { bucket: target },
        ResourceType::Queue => BoundTo::Queue { queue: target },
        ResourceType::Worker => BoundTo::Worker { service: target },
        ResourceType::Pages => return Err(missing()),
    };
    Ok(binding_json(&binding.name, kind))
}
