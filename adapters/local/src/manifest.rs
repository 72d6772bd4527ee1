//! The manifest of an object: a small file that is created with the object and describes it.

use std::path::PathBuf;

use core_domain::kernel::Timestamp;
use core_domain::port::{ObjectRequest, ResourceRef};
use core_domain::registry::ResourceType;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, StagingPath};
use crate::error::{LocalError, Result};
use crate::names::{check_name, digest};

/// The file name of the manifest.
const FILE: &str = "manifest.json";

/// The owner and the origin of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    /// The id of the object. It is the same for every attempt of one creation.
    pub(crate) id: String,
    /// The owner of the object.
    pub(crate) owner: String,
    /// The effect key of the request that created the object.
    pub(crate) effect_key: String,
    /// The time at which the object was created.
    pub(crate) created_at: Timestamp,
}

impl Manifest {
    pub(crate) fn new(request: &ObjectRequest, now: Timestamp) -> Self {
        let resource = &request.resource;
        let digest = digest(&[
            resource.resource_type.as_str().as_bytes(),
            resource.name.as_bytes(),
            request.owner.as_bytes(),
            request.effect_key.as_bytes(),
        ]);
        Self {
            id: digest[..32].to_owned(),
            owner: request.owner.clone(),
            effect_key: request.effect_key.clone(),
            created_at: now,
        }
    }

    /// Reads the manifest of an object. Returns `None` if the object does not exist.
    pub(crate) fn read(data: &DataDir, resource: &ResourceRef) -> Result<Option<Self>> {
        check_name(&resource.name)?;
        let folder = [resource.resource_type.as_str(), resource.name.as_str()];
        let file = [folder[0], folder[1], FILE];
        if let Some(found) = read_json(data, &file)? {
            return Ok(Some(found));
        }
        if !data.path(&folder)?.try_exists()? {
            return Ok(None);
        }
        // An object gets its folder and its manifest together. It may have been created after the first read.
        match read_json(data, &file)? {
            Some(found) => Ok(Some(found)),
            // The folder was not created by this provider.
            None => Err(LocalError::NameTaken(resource.name.clone())),
        }
    }

    /// Returns whether an object of this type and name exists. Invalid names do not exist.
    pub(crate) fn exists(data: &DataDir, resource_type: ResourceType, name: &str) -> Result<bool> {
        if check_name(name).is_err() {
            return Ok(false);
        }
        let path = data.path(&[resource_type.as_str(), name, FILE])?;
        Ok(path.try_exists()?)
    }

    /// Reads the manifest like [`Manifest::read`]. Returns [`LocalError::NameTaken`] if the object has another owner.
    pub(crate) fn read_owned(
        data: &DataDir,
        resource: &ResourceRef,
        owner: &str,
    ) -> Result<Option<Self>> {
        match Self::read(data, resource)? {
            Some(found) if found.owner != owner => {
                Err(LocalError::NameTaken(resource.name.clone()))
            }
            found => Ok(found),
        }
    }

    /// Writes the manifest into the staged folder of an object.
    pub(crate) fn write(&self, staged: &StagingPath) -> Result<()> {
        staged.write(FILE, &to_json(self)?)
    }
}

/// Reads and decodes a JSON file of the provider. Returns `None` if it does not exist.
pub(crate) fn read_json<T: DeserializeOwned>(data: &DataDir, parts: &[&str]) -> Result<Option<T>> {
    let Some(content) = data.read(parts)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content).map(Some).map_err(|error| {
        let path: PathBuf = parts.iter().collect();
        LocalError::damaged_file(path, error)
    })
}

/// Encodes a value as the content of a JSON file.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value).map_err(|error| LocalError::Io(error.into()))
}
