//! Secrets of workers and sites. They are a private file in the folder of the object and are deleted with it. Only the
//! worker receives the values; logs and responses contain only names.

use std::collections::BTreeMap;

use core_domain::kernel::Secret;
use core_domain::port::{ResourceRef, SetSecrets};

use crate::data_dir::DataDir;
use crate::error::{LocalError, Result};
use crate::hostname::is_served;
use crate::manifest::{Manifest, read_json, to_json};
use crate::names::{content_digest, display_name, is_identifier};

const FILE: &str = "secrets.json";

/// Maximum number of secrets in one request.
const MAX_SECRETS_PER_CALL: usize = 100;

/// Sets and deletes all secrets of the request, or none if it fails. Other secrets of the object are kept.
pub(crate) fn set(data: &DataDir, request: &SetSecrets) -> Result<()> {
    let resource = &request.resource;
    if !is_served(resource.resource_type) {
        let what = format!("a {} has no secrets", resource.resource_type);
        return Err(LocalError::Invalid(what));
    }
    if request.secrets.len() + request.deleted.len() > MAX_SECRETS_PER_CALL {
        let what = format!("at most {MAX_SECRETS_PER_CALL} secrets can be changed at once");
        return Err(LocalError::Invalid(what));
    }
    if let Some((name, _)) = request
        .secrets
        .iter()
        .find(|(name, _)| !is_identifier(name))
    {
        let what = format!("{name:?} is not the name of a secret");
        return Err(LocalError::Invalid(what));
    }
    let _lock = data.lock_publish()?;
    if Manifest::read_owned(data, resource, &request.owner)?.is_none() {
        return Err(LocalError::Missing(display_name(resource)));
    }
    let mut texts = texts(data, resource)?;
    let new = request.secrets.iter();
    texts.extend(new.map(|(name, secret)| (name.clone(), secret.expose().to_owned())));
    texts.retain(|name, _| !request.deleted.contains(name));
    data.replace_file(&parts(resource), &[&to_json(&texts)?])
}

/// Returns the names of the secrets of an object in alphabetical order. Returns an empty list if the object does not
/// exist.
pub(crate) fn names(data: &DataDir, resource: &ResourceRef) -> Result<Vec<String>> {
    if !Manifest::exists(data, resource.resource_type, &resource.name)? {
        return Ok(Vec::new());
    }
    Ok(texts(data, resource)?.into_keys().collect())
}

/// Returns the names and values of the secrets of an object.
pub(crate) fn read(data: &DataDir, resource: &ResourceRef) -> Result<BTreeMap<String, Secret>> {
    let texts = texts(data, resource)?.into_iter();
    Ok(texts
        .map(|(name, text)| (name, Secret::new(text)))
        .collect())
}

/// Returns a version that differs after every change of a secret.
pub(crate) fn version(data: &DataDir, resource: &ResourceRef) -> Result<String> {
    let content = data.read(&parts(resource))?;
    Ok(content_digest(&content.unwrap_or_default()))
}

fn texts(data: &DataDir, resource: &ResourceRef) -> Result<BTreeMap<String, String>> {
    Ok(read_json(data, &parts(resource))?.unwrap_or_default())
}

fn parts(resource: &ResourceRef) -> [&str; 3] {
    [resource.resource_type.as_str(), &resource.name, FILE]
}
