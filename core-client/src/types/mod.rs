//! The records and bodies of the API, one module per subject. Field names are those of the API in snake case. A field is
//! `None` where the API has `null`. Times are texts in RFC 3339 (UTC) or integers in Unix seconds, as the API sends them.

mod open_enum;

pub mod account;
pub mod custom_domain;
pub mod deployment;
pub mod dns_record;
pub mod entity;
pub mod environment;
pub mod feature;
pub mod job;
pub mod log;
pub mod page;
pub mod platform;
pub mod resource;
pub mod secret_name;
pub mod stack;
