//! What every service of the domain shares: ids, validated text, time, entropy, errors, pages, records, callers.

mod arbitrary;
mod bounded_json;
mod caller;
mod canonical;
mod cipher;
mod context;
mod effect;
mod entropy;
mod error;
mod hex;
mod id;
mod json_text;
mod jws;
mod limits;
mod machine;
mod page;
mod patch;
mod permission;
mod permission_set;
mod plain_name;
mod record;
mod record_list;
mod retry_after;
mod role;
mod sample;
mod secret;
mod store_error;
#[cfg(any(test, feature = "proptest"))]
pub(crate) mod strategy;
mod text;
mod text_value;
mod time;

pub(crate) use arbitrary::arbitrary;
pub use bounded_json::BoundedJson;
pub use caller::{Caller, Credential, Membership};
pub use canonical::canonical_json;
pub use cipher::Cipher;
pub use context::{Context, IfMatch, RequestInfo};
pub use effect::{Effect, Effects};
pub(crate) use entropy::BASE62;
pub use entropy::{Entropy, TOKEN_LENGTH, random_up_to, secret_token};
pub use error::{Code, Error, Issue, Result};
pub use hex::{hex, push_hex};
pub use id::*;
/// Durations in settings, as people write them: `90s`, `1h 30m`. For serde's `with`.
pub use jiff::fmt::serde::unsigned_duration::friendly::compact::required as duration_text;
pub use json_text::{JsonText, written_number, written_text};
pub(crate) use jws::Unverified;
pub use jws::{Ed25519Private, Ed25519Public, JwsError};
pub use limits::{Limits, MailLimits};
#[cfg(test)]
pub(crate) use machine::assert_only_table_moves;
pub(crate) use machine::state_machine;
pub use machine::{IllegalMove, Machine, Move};
pub use page::{
    Bounded, Cursor, DeletedFilter, Limit, ListQuery, NoFilter, Page, PageRequest, Total,
    WholeListQuery,
};
pub use patch::Patch;
pub(crate) use patch::update_command;
pub use permission::{Grant, Permission, WriteGrant, grant};
pub use permission_set::{PermissionPattern, PermissionSet, includes};
pub use plain_name::{OrganizationName, PLAIN_NAME, PersonName, PlainName, is_plain_name};
pub use record::{Audited, OfPlatform, Owner, PlatformOwned, Record, Stored, Unowned};
pub(crate) use record::{record, snapshot};
pub use record_list::for_each_record;
pub use retry_after::retry_after;
pub use role::{Role, Roles};
pub use sample::{Fields, sample_of, samples};
pub use secret::Secret;
pub use store_error::StoreError;
pub use text::{Email, Environment, Line, Name, Reason, Slug, TextError};
pub(crate) use text::{READABLE_LINE, READABLE_SEGMENT, text};
pub use text_value::TextValue;
pub(crate) use text_value::text_enum;
pub use time::{Clock, Timestamp, UnixSeconds};
