//! Registration of webhook endpoints.

use serde_json::json;

use crate::envelope::{Refusal, Reply};
use crate::params::Params;
use crate::state::State;
use crate::state::endpoint::Endpoint;

pub(crate) fn create(state: &mut State, params: &Params) -> Reply {
    params.only(&["url", "enabled_events", "api_version", "description"])?;
    let url = params.require("url")?.to_owned();
    let is_here = url.starts_with("http://127.0.0.1:");
    if !is_here {
        let message = "The fake sends webhooks only to http://127.0.0.1.";
        return Err(Refusal::parameter("url", message));
    }
    let kinds = params.texts("enabled_events")?;
    if kinds.is_empty() {
        return Err(Refusal::parameter(
            "enabled_events",
            "Missing required param: enabled_events.",
        )
        .code("parameter_missing"));
    }
    let version = params.text("api_version")?.map(str::to_owned);
    let origin = state.origin("we");
    let secret = state.settings.webhook_secret.clone();
    let rendered = json!({
        "id": origin.id,
        "object": "webhook_endpoint",
        "api_version": version,
        "application": null,
        "created": origin.created,
        "description": params.text("description")?,
        "enabled_events": kinds,
        "livemode": origin.is_live,
        "metadata": {},
        "secret": secret,
        "status": "enabled",
        "url": url,
    });
    state.endpoints.push(Endpoint { url, kinds });
    Ok(rendered)
}
