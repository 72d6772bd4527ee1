//! Pure rules of the Platform Control API Suite: records, validation, state machines, permissions, ports and use cases.
//!
//! Nothing here reads a clock, draws a random number or does I/O. Layers, each importing only those before it, but for one
//! pair: records implement [`port::Record`], and ports speak of records.
//!
//! 1. [`kernel`]: ids, validated text, time, entropy, errors, pages, callers and permissions.
//! 2. [`shared`], [`iam`], [`provisioning`], [`registry`], [`cli`], [`stacks`], [`gateway`]: records and rules, a folder a
//!    service.
//! 3. [`port`]: what the domain asks of the world: stores, infrastructure, password hashing.
//! 4. [`use_case`]: what the services do, a folder a service; each takes a [`kernel::Context`] and an open unit of work. A
//!    use case touches the records of its own service alone, and calls the use cases of others.
//!
//! # How to add a record
//! Write the struct and its query enum in the service's folder, implement [`port::Record`], add one line to
//! [`port::for_each_record`], describe its table in `core-storage/src/tables`, and add one migration per SQL dialect.
//!
//! # How to add a port
//! Write the trait in [`port`], dyn-safe and with what each error means to the caller; hand it to the use case that needs
//! it. The real thing is an adapter, a crate of its own that depends on this one alone.
//!
//! # How to add a job kind
//! Implement [`provisioning::JobKind`] beside the others in `use_case/registry/jobs/` or `use_case/cli/` and add it to their
//! `kinds()`: named steps, each of which looks whether its effect is there (`observe`), makes it (`apply`) and writes what
//! follows from it in the unit of work that ends the step (`record`). Any of them may be called again after a crash, so give
//! every object a name derived from what it is for. A job keeps the list of steps it was created with: a step that jobs
//! may still name stays. Queue it with [`use_case::provisioning::enqueue`].

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
