//! Validation of API keys for other services.

use std::sync::Arc;

use core_domain::access::ServiceScope;
use core_domain::gateway::Usage;
use core_domain::iam::ApiKeyRefusal;
use core_domain::kernel::{
    ApiKeyId, Caller, OrganizationId, PlatformId, Result, Roles, SuiteService, Timestamp, UserId,
};
use core_domain::use_case::iam::api_key::ApiKeyDetails;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::presented::{KeyLimits, find_key};
use crate::iam::cookies::no_store;
use crate::kernel::admission::rate_limit::API_KEY_WINDOW;
use crate::kernel::{Cx, Endpoint, Input, Output, post, with};

pub(super) fn row(limits: &Arc<KeyLimits>) -> Endpoint {
    post("/api/core/apikey/validate", "validateApiKey")
        .summary("Validates an API key for a service.")
        .description(
            "Returns `valid: true` with the owner, role and permissions of the key, or `valid: \
             false` with the reason in `code`. The status code is 200 in both cases. Each call \
             counts as a use of the key, except calls of the gateway, which counts the uses itself.",
        )
        .plain(with(limits, validate))
}

/// The API key to validate.
#[derive(Clone, Deserialize, JsonSchema)]
struct ValidateApiKey {
    /// The secret of the key.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    key: String,
}

/// The rate limit of a key and its current state.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KeyRateLimit {
    /// The maximum number of requests per window.
    limit: u32,
    /// The length of the window, in seconds.
    window_seconds: u64,
    /// The number of requests left in the current window. For the gateway, which counts itself, this is the limit.
    remaining: u32,
    /// The time until the current window ends, in seconds.
    reset_after: u64,
}

/// The identity and permissions of a valid key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ValidKey {
    /// The id of the key.
    key_id: ApiKeyId,
    /// The platform that the key acts for; `null` for a personal key.
    platform_id: Option<PlatformId>,
    /// The organization that the key acts for; `null` for a personal key.
    organization_id: Option<OrganizationId>,
    /// The user who owns the key; `null` if an organization owns it.
    user_id: Option<UserId>,
    /// The roles of the key in the organization, separated by commas; `null` for a personal key.
    role: Option<Roles>,
    /// The permissions of the key; empty for a personal key.
    permissions: Vec<String>,
    /// The time until which this result is valid if nothing changes; `null` if it does not expire. The secret or a
    /// grant of the owner expires then.
    expires_at: Option<Timestamp>,
    /// The rate limit of the key.
    rate_limit: KeyRateLimit,
    /// Whether the platform is suspended, so that the caller must be refused.
    suspended: bool,
}

impl ValidKey {
    fn new(found: ApiKeyDetails, usage: &Usage) -> Self {
        let acting = found.membership.as_ref();
        Self {
            key_id: found.key.id.clone(),
            platform_id: acting.and_then(|own| own.platform_id.clone()),
            organization_id: acting.map(|own| own.organization_id.clone()),
            user_id: found.key.user_id.clone(),
            role: acting.map(|own| own.roles.clone()),
            permissions: acting.map_or_else(Vec::new, |own| own.permissions.patterns()),
            expires_at: found.valid_until,
            rate_limit: KeyRateLimit {
                limit: found.key.requests_per_minute,
                window_seconds: API_KEY_WINDOW.as_secs(),
                remaining: usage.remaining,
                reset_after: usage.reset_after,
            },
            suspended: found.is_suspended,
        }
    }
}

/// The result of the validation. The fields of a valid key are on the same level as `valid`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ApiKeyValidation {
    /// Whether the key is accepted.
    valid: bool,
    /// The reason for which the key is not accepted; absent for a valid key.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ApiKeyRefusal>,
    /// The identity and permissions of the key; absent if it is not accepted.
    #[serde(flatten)]
    key: Option<ValidKey>,
}

/// Returns whether a gateway calls. It counts the uses of keys itself, because it caches this response.
fn is_gateway(caller: &Caller) -> bool {
    matches!(caller, Caller::Service { name } if name == SuiteService::Gateway.as_str())
}

/// Returns the usage of a key whose uses are not counted here.
fn full_limit(found: &ApiKeyDetails) -> Usage {
    Usage {
        is_allowed: true,
        remaining: found.key.requests_per_minute,
        reset_after: 0,
    }
}

async fn validate(
    cx: &Cx,
    limits: Arc<KeyLimits>,
    _: ServiceScope,
    input: Input<(), (), ValidateApiKey>,
) -> Result<Output<ApiKeyValidation>> {
    let found = find_key(cx.app.store.as_ref(), &input.body.key).await?;
    let outcome = match found {
        Ok(found) => {
            let usage = if is_gateway(&cx.caller) {
                full_limit(&found)
            } else {
                limits.count(&found).await.usage
            };
            if usage.is_allowed {
                Ok(ValidKey::new(found, &usage))
            } else {
                Err(ApiKeyRefusal::RateLimited)
            }
        }
        Err(refusal) => Err(refusal),
    };
    Ok(no_store(Output::new(ApiKeyValidation {
        valid: outcome.is_ok(),
        code: outcome.as_ref().err().copied(),
        key: outcome.ok(),
    })))
}
