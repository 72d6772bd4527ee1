//! What every object says about itself: a small file written with it.

use std::path::PathBuf;

use core_domain::kernel::Timestamp;
use core_domain::port::{CreateResource, ResourceRef};
use core_domain::registry::ResourceType;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, Staged};
use crate::error::{LocalError, Result};
use crate::names::{check_name, digest};

/// The name of the file.
const FILE: &str = "manifest.json";

/// Who an object belongs to and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    /// Our id of the object: the same for every attempt of the same creation.
    pub(crate) id: String,
    /// Who it belongs to.
    pub(crate) owner: String,
    /// The request that made it.
    pub(crate) effect_key: String,
    /// When.
    pub(crate) created_at: Timestamp,
}

impl Manifest {
    pub(crate) fn of(request: &CreateResource, now: Timestamp) -> Self {
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

    /// The manifest of the object; `None` when the object does not exist.
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
        // An object of ours has a manifest from the first moment, which may have come since.
        match read_json(data, &file)? {
            Some(found) => Ok(Some(found)),
            // Somebody else's folder.
            None => Err(LocalError::Taken(resource.name.clone())),
        }
    }

    /// Tells whether an object of this type and name exists; what cannot be a name is none.
    pub(crate) fn exists(data: &DataDir, resource_type: ResourceType, name: &str) -> Result<bool> {
        if check_name(name).is_err() {
            return Ok(false);
        }
        let path = data.path(&[resource_type.as_str(), name, FILE])?;
        Ok(path.try_exists()?)
    }

    /// As [`Manifest::read`], but another owner's object is [`LocalError::Taken`].
    pub(crate) fn read_owned(
        data: &DataDir,
        resource: &ResourceRef,
        owner: &str,
    ) -> Result<Option<Self>> {
        match Self::read(data, resource)? {
            Some(found) if found.owner != owner => Err(LocalError::Taken(resource.name.clone())),
            found => Ok(found),
        }
    }

    /// Writes the manifest into an object in the making.
    pub(crate) fn write(&self, staged: &Staged) -> Result<()> {
        staged.write(FILE, &to_json(self)?)
    }
}

/// Reads a file of ours; `None` when it does not exist.
pub(crate) fn read_json<T: DeserializeOwned>(data: &DataDir, parts: &[&str]) -> Result<Option<T>> {
    let Some(content) = data.read(parts)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content).map(Some).map_err(|error| {
        let path: PathBuf = parts.iter().collect();
        LocalError::damaged(path, error)
    })
}

/// The content of a file of ours.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value).map_err(|error| LocalError::Io(error.into()))
}
