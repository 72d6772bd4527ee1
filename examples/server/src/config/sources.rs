//! Where options come from, and which of them wins.

use figment::Figment;
use figment::providers::{Format, Serialized, Toml};

use super::error::{ConfigError, wrong};
use super::options::{Cli, Options};

/// What may not be shown.
const SECRETS: [&str; 6] = [
    "database_url",
    "auth_api_key",
    "secret",
    "master_key",
    "smtp_url",
    "cloudflare_api_token",
];

/// Flags over environment over file over defaults.
///
/// # Errors
/// [`ConfigError`] for a file that is not there and for a `--set` without a value.
pub(super) fn merged(
    cli: &Cli,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Figment, ConfigError> {
    let defaults = Options::defaults();
    let mut figment = Figment::from(Serialized::default("settings", &defaults.settings))
        .merge(Serialized::defaults(&defaults));
    if let Some(file) = &cli.config {
        if !file.is_file() {
            return Err(wrong("config", format!("{} is not a file", file.display())));
        }
        figment = figment.merge(Toml::file(file));
    }
    for (name, value) in environment {
        if let Some(key) = name.strip_prefix("CORE_").filter(|key| key.contains("__")) {
            figment = one(figment, &key.replace("__", ".").to_lowercase(), &value);
        }
    }
    figment = figment.merge(Serialized::defaults(&cli.options));
    for set in &cli.set {
        let (key, value) = set
            .split_once('=')
            .ok_or_else(|| wrong("set", format!("{set} is not of the form KEY=VALUE")))?;
        figment = one(figment, key, value);
    }
    Ok(figment)
}

/// The value as the file would have it; text needs no quotes here.
fn one(figment: Figment, key: &str, value: &str) -> Figment {
    let read: Option<toml::Value> = format!("value = {value}")
        .parse()
        .ok()
        .and_then(|mut table: toml::Table| table.remove("value"));
    let value = read.unwrap_or_else(|| toml::Value::String(value.to_owned()));
    figment.merge(Serialized::default(key, value))
}

/// Everything that holds, as TOML.
///
/// # Errors
/// [`ConfigError`] for a source that cannot be read.
pub(super) fn shown(sources: &Figment) -> Result<String, ConfigError> {
    let mut table: toml::Table = sources.extract().map_err(Box::new)?;
    for name in SECRETS {
        if let Some(value) = table.get_mut(name) {
            *value = toml::Value::String("(set, not shown)".to_owned());
        }
    }
    Ok(table.to_string())
}
