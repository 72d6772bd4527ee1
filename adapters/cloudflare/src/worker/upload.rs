//! Upload of worker scripts.

use bytes::Bytes;
use core_domain::port::{Cause, ObjectRequest, ProviderError, ProviderObject};
use http::Method;
use serde_json::Value;

use super::config::WorkerConfig;
use super::metadata::{Metadata, binding_json, var_json};
use super::script::{self, PATH};
use crate::bound::resolve;
use crate::client::Client;
use crate::multipart::{Form, boundary};
use crate::ownership::{ensure_owned, owner_from_mark};

/// Uploads a script. Returns an error if the name belongs to another owner. The API replaces any existing script of the
/// name, so the owner is checked first. A repeated upload of the same script only creates a new version.
pub(crate) async fn upload(
    client: &Client,
    request: &ObjectRequest,
) -> Result<ProviderObject, ProviderError> {
    let (name, owner) = (&request.resource.name, &request.owner);
    let worker = WorkerConfig::parse(&request.config)?;
    if let Some(found) = script::find(client, name).await? {
        ensure_owned(found, name, owner)?;
    }
    let bound = resolve(client, &worker.bindings, owner).await?;
    let bound = bound
        .iter()
        .map(|(name, bound_to)| binding_json(name, bound_to));
    let vars = worker.vars.iter().map(|(name, text)| var_json(name, text));
    let (content_type, body) = form(client, &worker, bound.chain(vars).collect(), owner)?;
    let call = client.call(Method::PUT, "worker.upload", &[&PATH[..], &[name]].concat());
    let call = call
        .query("excludeScript", true)
        .query("bindings_inherit", "strict");
    client.run(call.body(content_type, body).upload()).await?;
    Ok(ProviderObject {
        id: name.clone(),
        url: None,
        owner: owner_from_mark(Some(owner)),
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

/// Returns the content type of a module by its file extension.
fn module_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js" | "mjs") => "application/javascript+module",
        Some("cjs") => "application/javascript",
        Some("json") => "application/json",
        Some("py") => "text/x-python",
        _ => "text/plain",
    }
}
