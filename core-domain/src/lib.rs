//! Pure rules of the Platform Control API Suite: records, validation, state machines, permissions, ports and use cases.
//!
//! Nothing here reads a clock, draws a random number or does I/O. Layers, each importing only those before it:
//!
//! 1. [`kernel`]: ids, validated text, time, entropy, errors, pages, callers and permissions.
//! 2. [`shared`], [`registry`], [`stacks`] and the other services: records and rules, a folder a service.
//! 3. [`port`]: what the domain asks of the world: stores, infrastructure, password hashing.
//! 4. [`use_case`]: what the services do, a folder a service; each takes a [`kernel::Context`] and an open unit of work.
//!
//! # How to add a record
//! Write the struct and its query enum in the service's folder, implement [`port::Record`], add one line to
//! [`port::for_each_record`], describe its table in `core-storage/src/tables`, and add one migration per SQL dialect.

pub mod cli;
pub mod gateway;
pub mod iam;
pub mod kernel;
pub mod port;
pub mod provisioning;
pub mod registry;
pub mod shared;
pub mod stacks;
pub mod use_case;
