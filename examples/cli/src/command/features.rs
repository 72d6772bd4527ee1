//! Lists, activates and deactivates features.

use std::path::Path;

use core_client::types::feature::{ActivateFeature, Feature};
use serde_json::{Map, Value};

use crate::args::FeaturesCommand;
use crate::config::files::read_input;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::confirm;
use crate::text::{plain, short_time, time};

/// Runs a command about features. Without a command, the features are listed.
pub(crate) async fn run(context: &Context, command: Option<FeaturesCommand>) -> Result<()> {
    match command {
        None | Some(FeaturesCommand::List) => list(context).await,
        Some(FeaturesCommand::Activate {
            feature,
            feature_version,
            config,
        }) => {
            let config = config.as_deref().map(read_config).transpose()?;
            let feature = ActivateFeature {
                feature_id: feature,
                version: feature_version,
                config,
            };
            activate(context, &feature).await
        }
        Some(FeaturesCommand::Deactivate { feature }) => deactivate(context, &feature).await,
    }
}

fn read_config(path: &Path) -> Result<Map<String, Value>> {
    let text = read_input(path)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{} is no JSON object: {error}.", path.display())))
}

async fn list(context: &Context) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let features = client.list_features(&platform).await?;
    context.output.list(
        &features,
        &["FEATURE", "VERSION", "STATUS", "ACTIVE SINCE (UTC)"],
        |feature| {
            let Feature {
                feature_id,
                version,
                status,
                ..
            } = feature;
            vec![
                feature_id.clone(),
                version.clone(),
                status.to_string(),
                active_since(feature),
            ]
        },
    )
}

fn active_since(feature: &Feature) -> String {
    match &feature.activated_at {
        Some(Value::String(text)) => short_time(text),
        Some(value) => time(value.as_i64()),
        None => time(None),
    }
}

async fn activate(context: &Context, feature: &ActivateFeature) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    let outcome = client.activate_feature(&platform, feature).await?;
    context.output.result(&outcome, |outcome| {
        format!(
            "{} {} is being activated. `core-cli features` has its status.",
            plain(&outcome.feature_id),
            plain(&outcome.version)
        )
    })
}

async fn deactivate(context: &Context, feature: &str) -> Result<()> {
    let client = context.client()?;
    let platform = context.platform(&client).await?;
    confirm(context.yes, &format!("Deactivate the feature {feature}?"))?;
    let outcome = client.deactivate_feature(&platform, feature).await?;
    context.output.result(&outcome, |outcome| {
        format!(
            "{} is being deactivated. `core-cli features` has its status.",
            plain(&outcome.feature_id)
        )
    })
}
