//! Sets, lists and deletes secrets.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::Path;

use core_client::Secret;
use core_client::types::secret_name::SecretRecord;
use serde_json::json;

use super::dotenv;
use crate::args::SecretsCommand;
use crate::config::files::{read_input, read_limited};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::inputs::check_secret_name;
use crate::output::{ask_secretly, confirm};
use crate::text::{or_dash, short_time};

/// Runs a command about secrets.
pub(crate) async fn run(context: &Context, command: SecretsCommand) -> Result<()> {
    match command {
        SecretsCommand::Set {
            name,
            from_file,
            env_file,
            scope,
        } => {
            let secrets = match (name, env_file) {
                (_, Some(file)) => dotenv::parse(&read_input(&file)?)?,
                (Some(name), None) => one_secret(name, from_file.as_deref())?,
                (None, None) => return Err(Failure::usage("Name the secret.")),
            };
            set(context, secrets, scope.resource.as_deref()).await
        }
        SecretsCommand::List { scope } => list(context, scope.resource.as_deref()).await,
        SecretsCommand::Delete { name, scope } => {
            delete(context, &name, scope.resource.as_deref()).await
        }
    }
}

fn one_secret(name: String, file: Option<&Path>) -> Result<BTreeMap<String, Secret>> {
    check_name(&name)?;
    let value = match file {
        Some(file) => read_input(file)?,
        None if io::stdin().is_terminal() => ask_secretly(&format!("Value of {name}: "))?,
        None => read_limited(io::stdin().lock())
            .map_err(|error| Failure::unreadable(Path::new("standard input"), &error))?,
    };
    // Editors and `echo` end the last line.
    let value = value.strip_suffix('\n').map_or(value.as_str(), |line| {
        line.strip_suffix('\r').unwrap_or(line)
    });
    dotenv::check_value(value)
        .map_err(|problem| Failure::usage(format!("The value of {name} is invalid: {problem}.")))?;
    Ok(BTreeMap::from([(name, Secret::new(value))]))
}

/// Checks the name before a value is read. The message does not quote a value that was appended to it.
fn check_name(name: &str) -> Result<()> {
    if let Some((name, _)) = name.split_once('=')
        && check_secret_name(name).is_ok()
    {
        return Err(
            Failure::usage("NAME must not contain the value.").hint(format!(
                "Pass the value on standard input: core-cli secrets set {name} <FILE"
            )),
        );
    }
    check_secret_name(name)
        .map_err(|problem| Failure::usage(format!("NAME is invalid: {problem}.")))
}

async fn set(
    context: &Context,
    secrets: BTreeMap<String, Secret>,
    resource: Option<&str>,
) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let names: Vec<_> = secrets.keys().cloned().collect();
    let outcome = client.set_secrets(&platform, secrets, resource).await?;
    context
        .output
        .result(&outcome, |_| format!("{} set.", names.join(", ")))
}

async fn list(context: &Context, resource: Option<&str>) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let secrets = client.list_secrets(&platform, resource).await?;
    context
        .output
        .list(&secrets, &["NAME", "STATUS", "LAST SET (UTC)"], |secret| {
            let SecretRecord {
                name,
                status,
                last_set_at,
                ..
            } = secret;
            let at = last_set_at.as_deref().map(short_time);
            vec![name.clone(), status.to_string(), or_dash(at.as_deref())]
        })
}

async fn delete(context: &Context, name: &str, resource: Option<&str>) -> Result<()> {
    check_name(name)?;
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    confirm(context.yes, &format!("Delete the secret {name}?"))?;
    client.delete_secret(&platform, name, resource).await?;
    context
        .output
        .result(&json!({ "name": name, "deleted": true }), |_| {
            format!("{name} deleted.")
        })
}
