//! The settings of a command: flags, environment, `core.toml`, profiles.

pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod profiles;
pub(crate) mod project;
