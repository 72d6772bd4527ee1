//! Sets, lists and deletes secrets.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use core_client::Secret;
use core_client::types::secret_name::SecretRecord;
use serde_json::json;

use super::dotenv;
use crate::args::SecretsCommand;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::{ask_secretly, confirm};
use crate::text::{or_dash, short_time};

/// Maximum number of bytes of an input: more than 100 secrets of the maximum size.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

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
                (_, Some(file)) => dotenv::parse(&read_file(&file)?)?,
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
    let value = match file {
        Some(file) => read_file(file)?,
        None if io::stdin().is_terminal() => ask_secretly(&format!("Value of {name}: "))?,
        None => read_limited(io::stdin().lock())
            .map_err(|error| Failure::io("read the value", &error))?,
    };
    // Editors and `echo` end the last line.
    let value = value.strip_suffix('\n').map_or(value.as_str(), |line| {
        line.strip_suffix('\r').unwrap_or(line)
    });
    dotenv::check(&name, value).map_err(Failure::usage)?;
    Ok(BTreeMap::from([(name, Secret::new(value))]))
}

fn read_file(path: &Path) -> Result<String> {
    let text = fs::File::open(path).and_then(read_limited);
    text.map_err(|error| Failure::io(&format!("read {}", path.display()), &error))
}

fn read_limited(reader: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let limit = MAX_INPUT_BYTES;
    if reader.take(limit).read_to_string(&mut text)? as u64 == limit {
        return Err(io::Error::other("it is too long"));
    }
    Ok(text)
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
