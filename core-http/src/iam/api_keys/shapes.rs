//! What the routes of API keys take.

use core_domain::iam::{KeyPrefix, LONGEST_OVERLAP, MAX_REQUESTS_PER_MINUTE};
use core_domain::kernel::{
    ApiKeyId, Code, Error, Line, OrganizationId, Patch, PermissionPattern, Result,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What only a server sets in better-auth; clients are told so.
const SERVER_ONLY: [&str; 7] = [
    "remaining",
    "permissions",
    "refillAmount",
    "refillInterval",
    "rateLimitMax",
    "rateLimitTimeWindow",
    "rateLimitEnabled",
];

/// Fields of a body that have no place in its shape.
type Rest = Map<String, Value>;

/// Refuses what clients do not set.
pub(super) fn refuse_foreign(rest: &Rest) -> Result<()> {
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
    /// A life in seconds. Its bounds have codes of their own.
    Lifetime(i64) { "type": "integer", "examples": [2_592_000] };
    /// Uses a minute.
    RequestsPerMinute(u32) {
        "type": "integer", "minimum": 1, "maximum": MAX_REQUESTS_PER_MINUTE, "examples": [600]
    };
    /// Seconds for which a former secret goes on working.
    Overlap(u64) {
        "type": "integer", "minimum": 0, "maximum": LONGEST_OVERLAP.as_secs(), "examples": [86_400]
    };
    /// How many keys are shown.
    Count(usize) { "type": "integer", "minimum": 1, "examples": [10] };
    /// How many keys are skipped.
    Offset(usize) { "type": "integer", "minimum": 0, "examples": [0] };
}

/// The body with which a key is made. All but the first three fields are ours.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateApiKey {
    /// What its owner calls it: 1 to 32 characters.
    pub(super) name: Option<Line<0, 255>>,
    /// What it shall begin with, after `core_`.
    pub(super) prefix: Option<KeyPrefix>,
    /// For how many seconds it lives: a day to 365 days; until it is deleted when not said.
    pub(super) expires_in: Option<Lifetime>,
    /// The organization it acts for, which must have a platform; the active one when not said. Null, and nothing said where no
    /// organization is active, make a personal key: it acts for its owner alone, in no organization.
    #[serde(default)]
    pub(super) organization_id: Patch<OrganizationId>,
    /// Whether it belongs to the organization; otherwise to its maker, and may never more than they.
    #[serde(default)]
    pub(super) organization_owned: bool,
    /// What it may, of what its maker may; everything its owner may when not said.
    #[schemars(length(min = 1, max = 100))]
    pub(super) scopes: Option<Vec<PermissionPattern>>,
    /// How often it may be used in a minute; for owners of the organization and operators to set. 600 when not said.
    pub(super) requests_per_minute: Option<RequestsPerMinute>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub(super) rest: Rest,
}

/// The body with which a key is changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateApiKey {
    pub(super) key_id: ApiKeyId,
    /// What its owner calls it: 1 to 32 characters.
    pub(super) name: Option<Line<0, 255>>,
    /// Whether it is accepted.
    pub(super) enabled: Option<bool>,
    /// How often it may be used in a minute; for owners of the organization and operators to set.
    pub(super) requests_per_minute: Option<RequestsPerMinute>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub(super) rest: Rest,
}

/// The body with which a key is rotated.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RotateApiKey {
    pub(super) key_id: ApiKeyId,
    /// For how many seconds the secret it has goes on working; a day when not said. 0 ends every former secret at once.
    pub(super) overlap: Option<Overlap>,
}

/// The body with which a key is deleted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteApiKey {
    pub(super) key_id: ApiKeyId,
}

/// Which key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct GetApiKey {
    pub(super) id: ApiKeyId,
}

/// What a list is sorted by.
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

/// Which way a list is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum SortDirection {
    Asc,
    Desc,
}

/// Which keys, and how many of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListApiKeys {
    /// How many keys; all when not said.
    pub(super) limit: Option<Count>,
    /// How many keys are skipped.
    pub(super) offset: Option<Offset>,
    pub(super) sort_by: Option<SortBy>,
    /// Newest first when neither this nor `sortBy` is said; ascending when only that is.
    pub(super) sort_direction: Option<SortDirection>,
    /// Those that belong to this organization, or to the active one, instead of the caller's own.
    #[serde(default)]
    pub(super) organization_owned: bool,
    /// With `organizationOwned`: of this organization. Otherwise only the caller's own that act for it.
    pub(super) organization_id: Option<OrganizationId>,
}
