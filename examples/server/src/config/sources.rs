//! Merges the sources of options, in order of precedence.

use clap::ArgMatches;
use clap::parser::ValueSource;
use figment::Figment;
use figment::providers::{Format, Serialized, Toml};
use figment::value::{Dict, Value};

use super::error::{ConfigError, option_error};
use super::options::{Cli, Options};

/// Options whose values are not printed.
const SECRETS: [&str; 13] = [
    "database_url",
    "database_direct_url",
    "database_replica_url",
    "redis_url",
    "s3_secret_access_key",
    "auth_api_key",
    "secret",
    "master_key",
    "smtp_url",
    "otlp_headers",
    "cloudflare_api_token",
    "stripe_secret_key",
    "stripe_webhook_secret",
];

/// Merges flags over environment over file over defaults.
///
/// # Errors
/// [`ConfigError`] if the file does not exist, or if a `--set` has no value.
pub(super) fn merge(
    cli: &Cli,
    matches: &ArgMatches,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Figment, ConfigError> {
    let (given, defaults) = given_and_defaults(&cli.options, matches)?;
    let mut figment = Figment::from(Serialized::defaults(defaults));
    let known: toml::Table = figment.extract().map_err(Box::new)?;
    if let Some(file) = &cli.config {
        if !file.is_file() {
            return Err(option_error(
                "config",
                format!("{} is not a file", file.display()),
            ));
        }
        figment = figment.merge(Toml::file(file));
    }
    for (name, value) in environment {
        if let Some(key) = name.strip_prefix("CORE_").filter(|key| key.contains("__")) {
            figment = set_value(figment, &key_of(key, &known), &value);
        }
    }
    figment = figment.merge(Serialized::defaults(given));
    for set in &cli.set {
        let (key, value) = set
            .split_once('=')
            .ok_or_else(|| option_error("set", format!("{set} must have the form KEY=VALUE")))?;
        figment = set_value(figment, key, value);
    }
    Ok(figment)
}

/// Returns the values that a flag or its environment variable sets, and the default values.
fn given_and_defaults(
    options: &Options,
    matches: &ArgMatches,
) -> Result<(Dict, Dict), ConfigError> {
    let given: Vec<&str> = matches
        .ids()
        .map(clap::Id::as_str)
        .filter(|id| matches.value_source(id) != Some(ValueSource::DefaultValue))
        .collect();
    let values = Value::serialize(options).map_err(Box::new)?.into_dict();
    let values = values.unwrap_or_default().into_iter();
    let values = values.filter(|(_, value)| !matches!(value, Value::Empty(..)));
    Ok(values.partition(|(name, _)| given.contains(&name.as_str())))
}

/// Returns the key that an environment variable names. Two underscores separate its parts. One underscore stands for
/// itself, or for a dash if the known key has a dash, because variable names cannot have dashes.
fn key_of(variable: &str, known: &toml::Table) -> String {
    let mut table = Some(known);
    let mut parts = Vec::new();
    for part in variable.to_lowercase().split("__") {
        let names = |key: &&String| key.replace('-', "_") == part;
        let key = table.and_then(|table| table.keys().find(names));
        let key = key.map_or(part, String::as_str);
        table = table.and_then(|table| table.get(key)?.as_table());
        parts.push(key.to_owned());
    }
    parts.join(".")
}

/// Sets one value, parsed as in the TOML file. Text needs no quotes, and a date is read as text.
fn set_value(figment: Figment, key: &str, value: &str) -> Figment {
    let read: Option<toml::Value> = format!("value = {value}")
        .parse()
        .ok()
        .and_then(|mut table: toml::Table| table.remove("value"));
    let value = read.map_or_else(|| toml::Value::String(value.to_owned()), dates_as_text);
    figment.merge(Serialized::default(key, value))
}

/// Replaces dates by their text. No option has the type date, but some are texts that look like one.
fn dates_as_text(value: toml::Value) -> toml::Value {
    match value {
        toml::Value::Datetime(date) => toml::Value::String(date.to_string()),
        toml::Value::Array(values) => {
            toml::Value::Array(values.into_iter().map(dates_as_text).collect())
        }
        toml::Value::Table(table) => {
            let entries = table.into_iter();
            let entries = entries.map(|(key, value)| (key, dates_as_text(value)));
            toml::Value::Table(entries.collect())
        }
        value => value,
    }
}

/// Returns the effective configuration as TOML.
///
/// # Errors
/// [`ConfigError`] if a source cannot be read.
pub(super) fn effective(sources: &Figment) -> Result<String, ConfigError> {
    let mut table: toml::Table = sources.extract().map_err(Box::new)?;
    for name in SECRETS {
        if let Some(value) = table.get_mut(name) {
            *value = toml::Value::String("(set, not shown)".to_owned());
        }
    }
    Ok(table.to_string())
}
