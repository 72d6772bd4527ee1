//! `core.toml`: the settings of a site, beside the site.

use std::path::{Path, PathBuf};

use core_client::types::deployment::PRODUCTION;
use serde::Deserialize;

use super::files::read_optional;
use crate::failure::{Failure, Result};
use crate::inputs::{parse_branch, parse_platform, parse_profile_name, parse_url};

/// The name of the file.
pub(crate) const FILE_NAME: &str = "core.toml";

/// The settings of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    /// The id or slug of the platform.
    pub(crate) platform: Option<String>,
    /// The profile to use. Default: `default`.
    pub(crate) profile: Option<String>,
    /// The address of the gateway. Default: that of the profile.
    pub(crate) api_url: Option<String>,
    /// The folder with the built site, relative to this file. Default: the folder of this file.
    pub(crate) site: Option<PathBuf>,
    /// The branch whose deployments go live, besides `production`. Default: none.
    pub(crate) production_branch: Option<String>,
    /// The folder of the file.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
}

impl Project {
    /// Reads the file in a folder, or else in the nearest folder above; `None` if there is none.
    pub(crate) fn find(folder: &Path) -> Result<Option<Self>> {
        for folder in folder.ancestors() {
            let path = folder.join(FILE_NAME);
            let text = read_optional(&path).map_err(|error| Failure::unreadable(&path, &error))?;
            if let Some(text) = text {
                let mut project = Self::parse(&text, &path)?;
                folder.clone_into(&mut project.folder);
                return Ok(Some(project));
            }
        }
        Ok(None)
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        // The message of the parser has the line and the known keys.
        let project: Self = toml::from_str(text).map_err(|error| {
            Failure::usage(format!("{} is invalid:\n{error}", path.display()))
                .hint("The keys are platform, profile, api_url, site and production_branch.")
        })?;
        project.check().map_err(|(key, problem)| {
            Failure::usage(format!(
                "The value of {key} in {} is invalid: {problem}.",
                path.display()
            ))
            .hint("Correct the value, or delete the line.")
        })?;
        Ok(project)
    }

    /// Checks the values. Returns the key of the first invalid one, and the reason.
    fn check(&self) -> std::result::Result<(), (&'static str, String)> {
        type Parse = fn(&str) -> std::result::Result<String, String>;
        let values: [(_, &Option<String>, Parse); 4] = [
            ("platform", &self.platform, parse_platform),
            ("profile", &self.profile, parse_profile_name),
            ("api_url", &self.api_url, parse_url),
            ("production_branch", &self.production_branch, parse_branch),
        ];
        for (key, value, parse) in values {
            if let Some(value) = value {
                parse(value).map_err(|problem| (key, problem))?;
            }
        }
        match &self.site {
            Some(site) if site.as_os_str().is_empty() => Err(("site", "it is empty".to_owned())),
            _ => Ok(()),
        }
    }

    /// Returns the folder with the built site.
    pub(crate) fn site_folder(&self) -> PathBuf {
        match &self.site {
            Some(site) => self.folder.join(site),
            None => self.folder.clone(),
        }
    }

    /// Returns the branch of a deployment at the server.
    pub(crate) fn branch(&self, branch: Option<&str>) -> String {
        match branch {
            Some(branch) if Some(branch) != self.production_branch.as_deref() => branch.to_owned(),
            _ => PRODUCTION.to_owned(),
        }
    }
}

/// Returns the text of the file with another platform. Other lines stay as they are.
pub(crate) fn with_platform(text: &str, platform: &str) -> String {
    let line = format!("platform = {}\n", toml::Value::from(platform));
    let is_platform = |line: &str| {
        let key = line.trim_start().strip_prefix("platform");
        key.is_some_and(|after| after.trim_start().starts_with('='))
    };
    if !text.lines().any(is_platform) {
        return line + text;
    }
    let lines = text.split_inclusive('\n');
    lines
        .map(|old| if is_platform(old) { line.as_str() } else { old })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Project> {
        Project::parse(text, Path::new("core.toml"))
    }

    #[test]
    fn every_key_is_read() {
        let text = "platform = \"p\"\nprofile = \"staging\"\napi_url = \"http://a\"\nsite = \"dist\"\nproduction_branch = \"main\"\n";
        let project = parse(text).unwrap();
        assert_eq!(project.platform.as_deref(), Some("p"));
        assert_eq!(project.profile.as_deref(), Some("staging"));
        assert_eq!(project.site_folder(), Path::new("dist"));
    }

    #[test]
    fn an_unknown_key_is_an_error_with_its_line() {
        let failure = parse("platform = \"p\"\nplattform = \"q\"\n")
            .unwrap_err()
            .to_string();
        assert!(
            failure.contains("line 2") && failure.contains("plattform"),
            "{failure}"
        );
    }

    #[test]
    fn the_nearest_file_above_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "site = \"dist\"").unwrap();
        let project = Project::find(&below).unwrap().unwrap();
        assert_eq!(project.site_folder(), folder.path().join("dist"));
    }

    #[test]
    fn the_production_branch_goes_live() {
        let project = parse("production_branch = \"main\"").unwrap();
        assert_eq!(project.branch(None), "production");
        assert_eq!(project.branch(Some("main")), "production");
        assert_eq!(project.branch(Some("redesign")), "redesign");
        assert_eq!(Project::default().branch(Some("main")), "main");
    }

    #[test]
    fn linking_keeps_the_other_lines() {
        assert_eq!(with_platform("", "p"), "platform = \"p\"\n");
        let text = "# my site\nplatform=\"old\"\nsite = \"dist\"\n";
        assert_eq!(
            with_platform(text, "p"),
            "# my site\nplatform = \"p\"\nsite = \"dist\"\n"
        );
        assert_eq!(
            with_platform("site = \"dist\"\n", "p"),
            "platform = \"p\"\nsite = \"dist\"\n"
        );
    }
}
