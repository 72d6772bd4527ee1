//! The folder of a person's configuration.

use std::path::PathBuf;

use etcetera::{BaseStrategy, choose_base_strategy};

use crate::failure::{Failure, Result};

/// The name of the program's folder.
const NAME: &str = "core-cli";

/// Returns the folder: `$XDG_CONFIG_HOME/core-cli` or `~/.config/core-cli`; on Windows `%APPDATA%\core-cli`.
pub(crate) fn config_folder() -> Result<PathBuf> {
    let strategy = choose_base_strategy().map_err(|error| {
        Failure::other(format!("The home folder is unknown: {error}."))
            .hint("Set HOME or XDG_CONFIG_HOME.")
    })?;
    Ok(strategy.config_dir().join(NAME))
}
