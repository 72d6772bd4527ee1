//! Profiles: the installations that a person works with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{create_private_folder, read_optional, write_private_file};
use crate::failure::{Failure, Result};

/// The profile that is used if none is named.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// The profiles of a person, in `config.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profiles {
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

/// An installation of the suite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// The address of the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_url: Option<String>,
    /// The address of IAM. Default: the gateway's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) iam_url: Option<String>,
}

impl Profiles {
    /// Reads the profiles from the configuration folder.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = path(folder);
        let text = read_optional(&path).map_err(|error| Failure::unreadable(&path, &error))?;
        let Some(text) = text else {
            return Ok(Self::default());
        };
        toml::from_str(&text).map_err(|error| {
            Failure::usage(format!("{} is invalid:\n{error}", path.display()))
                .hint("Correct the line, or delete the file.")
        })
    }

    /// Returns whether a profile exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.profiles.contains_key(name)
    }

    /// Returns a profile; an empty one if it does not exist.
    pub(crate) fn get(&self, name: &str) -> Profile {
        self.profiles.get(name).cloned().unwrap_or_default()
    }

    /// Sets a profile and writes the file.
    pub(crate) fn save(mut self, folder: &Path, name: &str, profile: Profile) -> Result<()> {
        self.profiles.insert(name.to_owned(), profile);
        let text = toml::to_string(&self).map_err(|error| Failure::other(error.to_string()))?;
        let path = path(folder);
        let written =
            create_private_folder(folder).and_then(|()| write_private_file(&path, text.as_bytes()));
        written.map_err(|error| Failure::io(&format!("write {}", path.display()), &error))
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_profile_is_read_again_beside_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let profile = |url: &str| Profile {
            api_url: Some(url.to_owned()),
            iam_url: None,
        };
        Profiles::default()
            .save(folder.path(), "a", profile("http://a"))
            .unwrap();
        Profiles::read(folder.path())
            .unwrap()
            .save(folder.path(), "b", profile("http://b"))
            .unwrap();
        let profiles = Profiles::read(folder.path()).unwrap();
        assert_eq!(profiles.get("a"), profile("http://a"));
        assert_eq!(profiles.get("b"), profile("http://b"));
        assert_eq!(profiles.get("c"), Profile::default());
    }
}
