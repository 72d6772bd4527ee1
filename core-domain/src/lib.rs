//! The domain of the Platform Control API Suite: the records of every service, the rules about them, the state
//! machines, the permission checks, the ports and the use cases.
//!
//! The crate is a library without a runtime. `core-http` serves its use cases over HTTP, `core-storage` stores its
//! records, and the adapters implement its ports.
//!
//! # Modules
//! Outside of tests, each module imports only the modules above it in this table, with two exceptions. [`port`] uses
//! the record keys of [`access`], and `kernel/record.rs` contains the list of all records.
//!
//! | Module | Contents | Not in this module |
//! |---|---|---|
//! | [`kernel`] | types that mean the same in all services: ids, validated text, time, entropy, errors, pages, callers, permissions, the traits of records, state machines | anything of a single service |
//! | [`shared`] | records that several services use: audit log, outbox, idempotency keys, webhooks | reads and writes |
//! | [`gateway`], [`iam`], [`registry`], [`provisioning`], [`cli`], [`stacks`] | one module per service: its records, commands and rules | reads and writes |
//! | [`port`] | the traits through which the domain uses the outside world: stores, infrastructure, mail, DNS, password hashing | implementations; those are adapters |
//! | [`access`] | permission checks and scopes. Only a check creates a scope, and records can be read and written only through a scope | what an operation does after the check |
//! | [`use_case`] | the operations of the services, one folder per service and one file or folder per aggregate | HTTP, SQL and calls of providers inside a unit of work |
//! | `testing` | what tests use instead of adapters: mocks of the ports, a manual clock, seeded entropy (feature `testing`) | stores; tests use the memory store of `core-storage` |
//!
//! # Rules
//! - No clock: the time comes from the unit of work ([`port::UnitOfWork::now`]) or from the [`kernel::Clock`] port.
//! - No randomness: random bytes come from the [`kernel::Entropy`] port.
//! - No I/O: the domain reaches everything outside the process through the traits in [`port`].
//! - A use case takes a [`kernel::Context`], a scope and an open unit of work. It accesses only the records of its own
//!   service and calls the use cases of other services for theirs.
//!
//! # Errors
//! Every function that uses the store can fail with the errors of the store: [`kernel::StoreError`], in use cases
//! [`kernel::Error::Store`]. The `# Errors` sections list only the other causes. "Only those of the store." means that
//! there are no others.
//!
//! # How to add a record
//! 1. Write the struct, its query enum and its commands in the module of the service. Declare it with `record!` in the
//!    same file.
//! 2. Add one line to the macro [`for_each_record!`] in `kernel/record.rs`.
//! 3. Describe its table in `core-storage/src/tables` and generate the migrations:
//!    `cargo run -p core-storage --features sqlite --bin write-migration -- <name>`.
//!
//! The record is also the response of the interface: derive the traits of serde and schemars, and skip private fields.
//! Derive `Arbitrary` like the other records, for property tests.
//!
//! # How to add a use case
//! Take a scope: `&PlatformScope<permission::EntityWrite>` for an operation on a platform, or another scope of [`access`].
//! Read through `scope.records::<Entity>(uow)`. Write through [`access::audited`], which writes the audit entry, checks
//! `If-Match` and skips changes without effect.
//!
//! # How to add a permission or a state machine
//! One line in `kernel/permissions.rs` creates the permission and its type. One `state_machine!` next to a record
//! declares its statuses, events and transitions; the transition function, the audit actions and the property test are
//! derived from it.
//!
//! # How to add a port
//! Write a dyn-safe trait in [`port`] and document what each error means for the caller. Pass it to the use case that
//! needs it. Implement it in an adapter: a crate of its own that depends only on this one.
//!
//! # How to add a job kind
//! Implement [`use_case::provisioning::JobKind`] next to the others in `use_case/registry/jobs/` or `use_case/cli/`,
//! and add it to their `register_kinds`. A job kind has a name, a typed input, and steps. Each step has three
//! functions:
//!
//! - `observe` checks whether the effect of the step already exists.
//! - `apply` creates the effect.
//! - `record` writes the consequences in the unit of work that ends the step.
//!
//! Each of them can be called again after a crash, so derive the name of every object from its purpose. A job keeps the
//! list of steps that it was created with, so do not remove a step that existing jobs contain. Create a job with
//! [`use_case::provisioning::enqueue`].

pub mod access;
pub mod billing;
pub mod cli;
pub mod gateway;
pub mod iam;
pub mod kernel;
pub mod port;
pub mod provisioning;
pub mod registry;
pub mod shared;
pub mod stacks;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod use_case;
