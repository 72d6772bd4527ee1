//! The methods of the client, one module per subject.

mod account;
mod custom_domain;
mod deployment;
mod dns_record;
mod entity;
mod feature;
mod job;
mod log;
mod platform;
mod resource;
mod secret_name;
mod stack;
mod waiting;
