//! The basic types that every service uses. A type belongs here if it means the same in all services: ids, validated
//! text, time, entropy, errors, pages, callers, permissions, the traits of records and state machines. Records, rules
//! and use cases of a single service do not belong here.

mod arbitrary;
mod caller;
mod cipher;
mod context;
pub mod duration_text;
mod effect;
mod entropy;
mod error;
mod id;
mod json;
mod jws;
mod limits;
mod machine;
mod month;
mod notice;
mod page;
mod patch;
mod permissions;
mod plain_name;
mod record;
mod record_list;
mod role;
mod sample;
mod store_error;
#[cfg(any(test, feature = "proptest"))]
pub(crate) mod strategy;
mod suite_service;
mod text;
mod time;

pub(crate) use arbitrary::arbitrary;
pub use caller::{Caller, Credential, Membership};
pub use cipher::{Cipher, Secret, hex, parse_hex, push_hex};
pub use context::{Context, IfMatch, RequestInfo};
pub use duration_text::optional as optional_duration_text;
pub use effect::{Effect, Effects};
pub(crate) use entropy::BASE62;
pub use entropy::{Entropy, TOKEN_LENGTH, random_up_to, secret_token};
pub use error::{Code, Error, Issue, Result, retry_after};
pub use id::*;
pub use json::{BoundedJson, JsonText, canonical_json, number_literal, number_literal_text};
pub(crate) use jws::UnverifiedJws;
pub use jws::{Ed25519Private, Ed25519Public, JwsError};
pub use limits::{Limits, MailLimits};
#[cfg(test)]
pub(crate) use machine::assert_only_table_moves;
pub(crate) use machine::state_machine;
pub use machine::{IllegalTransition, Machine, Transition};
pub use month::Month;
pub use notice::{Notice, NoticeSet, ProcessName};
pub use page::{
    Bounded, Cursor, DeletedFilter, Limit, ListQuery, ListVersion, NoFilter, Page, PageQuery,
    Total, WholeListQuery,
};
pub use patch::Patch;
pub(crate) use patch::update_command;
pub use permissions::{
    Permission, PermissionPattern, PermissionSet, PermissionType, WritePermission,
    pattern_includes, permission,
};
pub use plain_name::{OrganizationName, PLAIN_NAME, PersonName, PlainName, is_plain_name};
pub use record::{Audited, OfPlatform, Owner, PlatformOwned, Record, Stored, Unowned};
pub(crate) use record::{record, snapshot};
pub use record_list::for_each_record;
pub use role::{Role, Roles};
pub use sample::{Fields, sample_of, samples};
pub use store_error::StoreError;
pub use suite_service::SuiteService;
pub use text::{Email, Environment, Line, Name, Reason, Slug, TextError, TextValue};
pub(crate) use text::{READABLE_LINE, READABLE_SEGMENT, text, text_enum};
pub use time::{Clock, Timestamp, UnixSeconds};
