//! What a provisioning job works for, kept as its input.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::{
    Context, Email, EntityId, Environment, Error, PlatformId, RequestInfo, Result, Slug,
};
use crate::provisioning::Job;

/// The platform and environment a job works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The platform.
    pub platform_id: PlatformId,
    /// Its slug; part of the names at the provider.
    pub slug: Slug,
    /// The entity the resources belong to; the platform's own tenant when not said.
    pub entity_id: Option<EntityId>,
    /// Where it all runs.
    pub environment: Environment,
    /// The plan it is for.
    pub plan_tier: String,
    /// Where bills go.
    pub billing_email: Option<Email>,
}

impl Target {
    /// The target as the input of a job.
    #[must_use]
    pub fn to_input(&self) -> Value {
        to_input(self)
    }
}

/// A structure of ours as the input of a job.
pub(crate) fn to_input<T: Serialize>(input: &T) -> Value {
    // Ids, texts and words are always JSON; a job without input fails with a clear error.
    serde_json::to_value(input).unwrap_or(Value::Null)
}

/// Reads the input of a job.
///
/// # Errors
/// `VALIDATION_ERROR` when it is not what the kind wants: the job cannot go on.
pub(crate) fn read_input<T: DeserializeOwned>(job: &Job) -> Result<T> {
    T::deserialize(&job.input).map_err(|error| {
        Error::invalid(
            "input",
            "invalid",
            format!("is not that of {}: {error}", job.kind),
        )
    })
}

/// The context of what a job writes: the suite does it, for the request that queued the job.
pub(crate) fn as_asked_by(cx: &Context, job: &Job) -> Context {
    Context {
        request: RequestInfo {
            request_id: job.request_id.clone(),
            trace_id: job.trace_id.clone(),
            ..RequestInfo::default()
        },
        ..cx.clone()
    }
}
