//! What services ask about a key: who is behind it.

use std::sync::Arc;

use core_domain::access::ServiceScope;
use core_domain::iam::ApiKeyRefusal;
use core_domain::kernel::{ApiKeyId, OrganizationId, PlatformId, Result, Roles, Timestamp, UserId};
use core_domain::use_case::iam::api_key::ApiKeyDetails;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::presented::{KeyLimits, key_of};
use crate::iam::cookies::no_store;
use crate::kernel::rate_limit::{API_KEY_WINDOW, ApiKeyUsage};
use crate::kernel::{Cx, Endpoint, Input, Output, post, with};

pub(super) fn row(limits: &Arc<KeyLimits>) -> Endpoint {
    post("/api/core/apikey/validate", "validateApiKey")
        .summary("For services: who is behind an API key. Each call counts as a use of the key.")
        .plain(with(limits, validate))
}

/// The body of a validation.
#[derive(Clone, Deserialize, JsonSchema)]
struct ValidateApiKey {
    /// The key's secret.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    key: String,
}

/// How the limit of a key stands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KeyRateLimit {
    /// Uses in a window.
    limit: u32,
    window_seconds: u64,
    /// How many more uses the window has.
    remaining: u32,
    /// In how many seconds the window ends.
    reset_after: u64,
}

/// Who is behind a key.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ValidKey {
    key_id: ApiKeyId,
    /// Null for a personal key, which acts in no organization.
    platform_id: Option<PlatformId>,
    /// Null for a personal key.
    organization_id: Option<OrganizationId>,
    /// Whose it is; null for the organization's own.
    user_id: Option<UserId>,
    /// Null for a personal key.
    role: Option<Roles>,
    /// Empty for a personal key.
    permissions: Vec<String>,
    /// Until when this holds if nobody changes anything.
    expires_at: Option<Timestamp>,
    rate_limit: KeyRateLimit,
    /// Whether the platform's callers are to be refused.
    suspended: bool,
}

impl ValidKey {
    fn new(found: ApiKeyDetails, usage: &ApiKeyUsage) -> Self {
        let acting = found.membership.as_ref();
        Self {
            key_id: found.key.id.clone(),
            platform_id: acting.and_then(|own| own.platform_id.clone()),
            organization_id: acting.map(|own| own.organization_id.clone()),
            user_id: found.key.user_id.clone(),
            role: acting.map(|own| own.role.clone()),
            permissions: acting.map_or_else(Vec::new, |own| own.permissions.patterns()),
            expires_at: found.valid_until,
            rate_limit: KeyRateLimit {
                limit: found.key.requests_per_minute,
                window_seconds: API_KEY_WINDOW.as_secs(),
                remaining: usage.usage.remaining,
                reset_after: usage.usage.reset_after,
            },
            suspended: found.suspended,
        }
    }
}

/// Whether a key is accepted, and who is behind it or why not.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct ApiKeyValidation {
    valid: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ApiKeyRefusal>,
    /// Who is behind it; the fields stand beside `valid`.
    #[serde(flatten)]
    key: Option<ValidKey>,
}

async fn validate(
    cx: &Cx,
    limits: Arc<KeyLimits>,
    _: ServiceScope,
    input: Input<(), (), ValidateApiKey>,
) -> Result<Output<ApiKeyValidation>> {
    let found = key_of(cx.app.store.as_ref(), &input.body.key).await?;
    let outcome = match found {
        Ok(found) => {
            let usage = limits.count(&found).await;
            if usage.usage.allowed {
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
