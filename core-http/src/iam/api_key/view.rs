//! API keys in the format of better-auth's clients, with the additional fields of the suite.

use std::collections::BTreeMap;

use core_domain::iam::{API_KEY_PREFIX, ApiKey, ApiKeyStatus, KeyPrefix};
use core_domain::kernel::{
    ApiKeyId, Line, OrganizationId, PermissionPattern, PlatformId, Timestamp, UserId,
};
use core_domain::use_case::iam::api_key::IssuedApiKey;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::kernel::admission::rate_limit::API_KEY_WINDOW;

/// The number of characters of the secret that better-auth shows.
const START: usize = 6;

/// An API key, without its secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiKeyView {
    /// The id of the key.
    id: ApiKeyId,
    /// Always `default`, for compatibility with better-auth.
    config_id: &'static str,
    /// The name of the key; `null` without one.
    name: Option<Line<1, 32>>,
    /// The first 6 characters of the secret.
    start: String,
    /// The text with which the secret begins, including `core_`.
    prefix: String,
    /// The id of the owner: a user or an organization.
    reference_id: String,
    /// Whether the key is accepted.
    enabled: bool,
    /// Always `true`: every key has a rate limit.
    rate_limit_enabled: bool,
    /// The length of the rate limit window, in milliseconds.
    rate_limit_time_window: u64,
    /// The maximum number of requests per window.
    rate_limit_max: u32,
    /// Always 0, because uses are not counted permanently; see `lastRequest`.
    request_count: u32,
    /// Always `null`: the total number of uses is not limited.
    remaining: Option<u32>,
    /// Always `null`: the total number of uses is not limited.
    refill_interval: Option<u32>,
    /// Always `null`: the total number of uses is not limited.
    refill_amount: Option<u32>,
    /// Always `null`: the total number of uses is not limited.
    last_refill_at: Option<Timestamp>,
    /// The time of the last use, accurate to one minute; `null` if never used.
    last_request: Option<Timestamp>,
    /// The time at which the key expires; `null` if it does not expire.
    expires_at: Option<Timestamp>,
    /// The scopes in the format of better-auth: lists of actions by resource. `null` if the key has all permissions of
    /// its owner.
    permissions: Option<BTreeMap<String, Vec<String>>>,
    /// Always `null`: metadata is not supported.
    metadata: Option<Value>,
    /// The time at which the key was created.
    created_at: Timestamp,
    /// The time of the last change of the key.
    updated_at: Timestamp,
    /// The first 12 characters of the secret.
    display_start: String,
    /// The user who owns the key; `null` if an organization owns it.
    user_id: Option<UserId>,
    /// The organization that the key acts for; `null` for a personal key.
    organization_id: Option<OrganizationId>,
    /// The platform of that organization; `null` for a personal key.
    platform_id: Option<PlatformId>,
    /// Whether the key belongs to an organization.
    organization_owned: bool,
    /// The permissions that the key is limited to; `null` if it has all permissions of its owner.
    scopes: Option<Vec<PermissionPattern>>,
    /// The maximum number of requests per minute.
    requests_per_minute: u32,
    /// The time until which the secret before the last rotation is valid; `null` if the key was never rotated.
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

/// A key with its secret, which is returned only once.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct IssuedApiKeyView {
    #[serde(flatten)]
    view: ApiKeyView,
    /// The secret of the key.
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

/// A list of API keys.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiKeyList {
    /// The keys of this page, without their secrets.
    pub(super) api_keys: Vec<ApiKeyView>,
    /// The total number of keys, before `limit` and `offset`.
    pub(super) total: usize,
    /// The `limit` of the request; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<usize>,
    /// The `offset` of the request; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<usize>,
}
