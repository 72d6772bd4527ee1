//! A key as better-auth's clients know it, with what they do not know beside it.

use std::collections::BTreeMap;

use core_domain::iam::{API_KEY_PREFIX, ApiKey, ApiKeyStatus, KeyPrefix};
use core_domain::kernel::{
    ApiKeyId, Line, OrganizationId, PermissionPattern, PlatformId, Timestamp, UserId,
};
use core_domain::use_case::iam::api_key::IssuedApiKey;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::kernel::rate_limit::API_KEY_WINDOW;

/// How much of a secret better-auth shows.
const START: usize = 6;

/// A key, without its secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiKeyView {
    id: ApiKeyId,
    /// Always `default`.
    config_id: &'static str,
    name: Option<Line<1, 32>>,
    /// The first 6 characters of its secret.
    start: String,
    /// What its secret begins with.
    prefix: String,
    /// The owner: a user, or the organization.
    reference_id: String,
    enabled: bool,
    rate_limit_enabled: bool,
    /// In milliseconds.
    rate_limit_time_window: u64,
    rate_limit_max: u32,
    /// Always 0: uses are not counted for good; `lastRequest` says when the last one was.
    request_count: u32,
    remaining: Option<u32>,
    refill_interval: Option<u32>,
    refill_amount: Option<u32>,
    last_refill_at: Option<Timestamp>,
    /// To the minute.
    last_request: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    /// The scopes as better-auth writes them: actions by resource.
    permissions: Option<BTreeMap<String, Vec<String>>>,
    metadata: Option<Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// The first 12 characters of its secret.
    display_start: String,
    user_id: Option<UserId>,
    /// The organization that it acts for; null for a personal key.
    organization_id: Option<OrganizationId>,
    /// The platform of that organization.
    platform_id: Option<PlatformId>,
    organization_owned: bool,
    /// What it is narrowed to; null when it may everything its owner may.
    scopes: Option<Vec<PermissionPattern>>,
    requests_per_minute: u32,
    /// Until when the secret works that it had before it was rotated; null when it was not.
    overlap_ends_at: Option<Timestamp>,
}

impl From<&ApiKey> for ApiKeyView {
    fn from(key: &ApiKey) -> Self {
        let user = key.user_id.as_ref().map(UserId::as_str);
        let organization = key.organization_id.as_ref().map(OrganizationId::as_str);
        let prefix = key.prefix.as_ref().map_or("", KeyPrefix::as_str);
        Self {
            id: key.id.clone(),
            config_id: "default",
            name: key.name.clone(),
            start: key.start.chars().take(START).collect(),
            prefix: format!("{API_KEY_PREFIX}{prefix}"),
            reference_id: user.or(organization).unwrap_or_default().to_owned(),
            enabled: key.status == ApiKeyStatus::Active,
            rate_limit_enabled: true,
            rate_limit_time_window: API_KEY_WINDOW.as_secs() * 1_000,
            rate_limit_max: key.requests_per_minute,
            request_count: 0,
            remaining: None,
            refill_interval: None,
            refill_amount: None,
            last_refill_at: None,
            last_request: key.last_used_at,
            expires_at: key.expires_at,
            permissions: key.scopes.as_deref().map(by_resource),
            metadata: None,
            created_at: key.created_at,
            updated_at: key.updated_at,
            display_start: key.start.clone(),
            user_id: key.user_id.clone(),
            organization_id: key.organization_id.clone(),
            platform_id: key.platform_id.clone(),
            organization_owned: key.user_id.is_none(),
            scopes: key.scopes.clone(),
            requests_per_minute: key.requests_per_minute,
            overlap_ends_at: key.previous_until,
        }
    }
}

fn by_resource(scopes: &[PermissionPattern]) -> BTreeMap<String, Vec<String>> {
    let mut actions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let parts = scopes.iter().filter_map(|s| s.as_str().split_once(':'));
    for (resource, action) in parts {
        let of_resource = actions.entry(resource.to_owned()).or_default();
        of_resource.push(action.to_owned());
    }
    actions
}

/// A key with its secret, which is shown this once.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct IssuedApiKeyView {
    #[serde(flatten)]
    view: ApiKeyView,
    /// The secret.
    key: String,
}

impl From<IssuedApiKey> for IssuedApiKeyView {
    fn from(issued: IssuedApiKey) -> Self {
        Self {
            view: ApiKeyView::from(&*issued.key),
            key: issued.secret.expose().to_owned(),
        }
    }
}

/// A list of keys.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiKeyList {
    pub(super) api_keys: Vec<ApiKeyView>,
    /// How many there are in all.
    pub(super) total: usize,
    /// As it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<usize>,
    /// As it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<usize>,
}
