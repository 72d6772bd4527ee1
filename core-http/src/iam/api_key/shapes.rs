//! The request bodies and queries of the API key routes.

use core_domain::iam::{KeyPrefix, MAX_REQUESTS_PER_MINUTE, MAX_ROTATION_OVERLAP};
use core_domain::kernel::{
    ApiKeyId, Code, Error, Line, OrganizationId, Patch, PermissionPattern, Result,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Fields that better-auth accepts only from a server. A request with one of them is rejected with
/// `SERVER_ONLY_PROPERTY`.
const SERVER_ONLY: [&str; 7] = [
    "remaining",
    "permissions",
    "refillAmount",
    "refillInterval",
    "rateLimitMax",
    "rateLimitTimeWindow",
    "rateLimitEnabled",
];

/// Fields of a body that its type does not declare.
type UndeclaredFields = Map<String, Value>;

/// Rejects fields that clients cannot set.
pub(super) fn refuse_undeclared(rest: &UndeclaredFields) -> Result<()> {
    let given = |name: &str| rest.get(name).is_some_and(|value| !value.is_null());
    if given("metadata") {
        let message = "Metadata is disabled.";
        return Err(Error::refused(Code::MetadataDisabled, message));
    }
    if SERVER_ONLY.into_iter().any(given) {
        let message =
            "The property you're trying to set can only be set from the server auth instance only.";
        return Err(Error::refused(Code::ServerOnlyProperty, message));
    }
    Ok(())
}

macro_rules! integers {
    ($($(#[$meta:meta])* $name:ident($number:ty) $schema:tt;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Deserialize)]
        #[serde(transparent)]
        pub(super) struct $name(pub(super) $number);

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )+};
}

integers! {
    /// A lifetime in seconds. Its limits are checked later and have error codes of their own.
    Lifetime(i64) { "type": "integer", "examples": [2_592_000] };
    /// The number of requests per minute.
    RequestsPerMinute(u32) {
        "type": "integer", "minimum": 1, "maximum": MAX_REQUESTS_PER_MINUTE, "examples": [600]
    };
    /// The number of seconds for which a previous secret stays valid.
    Overlap(u64) {
        "type": "integer", "minimum": 0, "maximum": MAX_ROTATION_OVERLAP.as_secs(), "examples": [86_400]
    };
    /// The maximum number of keys to return.
    Count(usize) { "type": "integer", "minimum": 1, "examples": [10] };
    /// The number of keys to skip.
    Offset(usize) { "type": "integer", "minimum": 0, "examples": [0] };
}

/// The properties of the new key. better-auth defines `name`, `prefix` and `expiresIn`; the other fields are
/// extensions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateApiKey {
    /// The name of the key, 1 to 32 characters. Default: none.
    pub(super) name: Option<Line<0, 255>>,
    /// The text with which the secret begins, after `core_`. Default: none.
    pub(super) prefix: Option<KeyPrefix>,
    /// The lifetime in seconds, from 86400 (1 day) to 31536000 (365 days). Default: the key does not expire.
    pub(super) expires_in: Option<Lifetime>,
    /// The organization that the key acts for; it must have a platform. `null` creates a personal key. Default: the
    /// active organization; without one, a personal key.
    #[serde(default)]
    pub(super) organization_id: Patch<OrganizationId>,
    /// Whether the key belongs to the organization. Otherwise it belongs to the caller and never has more permissions
    /// than the caller. Default: false.
    #[serde(default)]
    pub(super) organization_owned: bool,
    /// The permissions that the key is limited to, 1 to 100 patterns. Default: all permissions of its owner.
    #[schemars(length(min = 1, max = 100))]
    pub(super) scopes: Option<Vec<PermissionPattern>>,
    /// The maximum number of requests per minute. Only owners of the organization and operators can set it. Default:
    /// 600.
    pub(super) requests_per_minute: Option<RequestsPerMinute>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub(super) rest: UndeclaredFields,
}

/// The properties of the key to change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateApiKey {
    /// The id of the key.
    pub(super) key_id: ApiKeyId,
    /// The new name, 1 to 32 characters. If absent, the name is kept.
    pub(super) name: Option<Line<0, 255>>,
    /// Whether the key is accepted. If absent, this is kept.
    pub(super) enabled: Option<bool>,
    /// The maximum number of requests per minute. Only owners of the organization and operators can set it. If absent,
    /// it is kept.
    pub(super) requests_per_minute: Option<RequestsPerMinute>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub(super) rest: UndeclaredFields,
}

/// The key whose secret is replaced.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RotateApiKey {
    /// The id of the key.
    pub(super) key_id: ApiKeyId,
    /// The number of seconds for which the current secret stays valid, at most 604800 (7 days). 0 ends every previous
    /// secret at once. Default: 86400 (1 day).
    pub(super) overlap: Option<Overlap>,
}

/// The key to delete.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteApiKey {
    /// The id of the key.
    pub(super) key_id: ApiKeyId,
}

/// The key to return.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct GetApiKey {
    /// The id of the key.
    pub(super) id: ApiKeyId,
}

/// The field that a list of keys is sorted by.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum SortBy {
    #[default]
    CreatedAt,
    UpdatedAt,
    Name,
    ExpiresAt,
    LastRequest,
}

/// The direction in which a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum SortDirection {
    Asc,
    Desc,
}

/// Selects, sorts and limits the keys.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListApiKeys {
    /// The maximum number of keys to return. Default: all.
    pub(super) limit: Option<Count>,
    /// The number of keys to skip. Default: 0.
    pub(super) offset: Option<Offset>,
    /// The field that the keys are sorted by. Default: `createdAt`.
    pub(super) sort_by: Option<SortBy>,
    /// The direction of the sort. Default: ascending if `sortBy` is present; otherwise newest first.
    pub(super) sort_direction: Option<SortDirection>,
    /// Lists the keys of an organization in place of the caller's own. Default: false.
    #[serde(default)]
    pub(super) organization_owned: bool,
    /// With `organizationOwned`, the organization whose keys are listed; default: the active one. Without it, only the
    /// caller's keys for this organization are listed.
    pub(super) organization_id: Option<OrganizationId>,
}
