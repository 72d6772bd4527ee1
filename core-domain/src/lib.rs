//! Pure rules of the Platform Control API Suite: records, validation, state machines, permissions, ports and use cases.
//!
//! Nothing here reads a clock, makes random numbers or does I/O. Layers, each importing only those before it:
//!
//! 1. [`kernel`]: ids, validated text, time, entropy, errors, pages, callers, permissions, records and state machines.
//! 2. [`shared`], [`iam`], [`provisioning`], [`registry`], [`cli`], [`stacks`], [`gateway`]: records, commands and rules, a
//!    folder a service.
//! 3. [`port`]: what the domain asks of the world: stores, infrastructure, password hashing.
//! 4. [`access`]: who reaches which records. A scope is made by an access check alone, and records are read and written
//!    through a scope alone.
//! 5. [`use_case`]: what the services do, a folder a service and in it a folder an aggregate; each takes a
//!    [`kernel::Context`], a scope and an open unit of work. A use case touches the records of its own service alone, and
//!    calls the use cases of others.
//!
//! # How to add a record
//! Write the struct, its query enum and its commands in the service's folder, name it in a `record!` line beside it, add
//! one line to the list in `kernel/record_list.rs`, describe its table in `core-storage/src/tables`, and have the
//! migrations written (`cargo run -p core-storage --bin write-migration`). The record is what the interface shows: give it
//! serde's and schemars' derives, and skip what is not to be seen; `Arbitrary` besides, as the others have it, for
//! property tests.
//!
//! # How to add a use case
//! Take a scope: `&PlatformScope<grant::EntityWrite>` for what happens on a platform, or one of the others in [`access`].
//! Read through `scope.records::<Entity>(uow)`, write through [`access::audited`]: it writes the audit entry, checks
//! `If-Match` and skips a change that changes nothing.
//!
//! # How to add a permission, a state machine
//! A line in `kernel/permission.rs` makes the permission and its grant. Statuses, events and moves of a record are one
//! `state_machine!` beside it; the transition function, the audit actions and the property test come from it.
//!
//! # How to add a port
//! Write the trait in [`port`], dyn-safe and with what each error means to the caller; hand it to the use case that needs
//! it. The real thing is an adapter, a crate of its own that depends on this one alone.
//!
//! # How to add a job kind
//! Implement [`use_case::provisioning::JobKind`] beside the others in `use_case/registry/jobs/` or `use_case/cli/` and add
//! it to their `register_kinds`: a name, a typed input, and steps with their own types, each of which looks whether its
//! effect is there (`observe`), makes it (`apply`) and writes what follows from it in the unit of work that ends the step
//! (`record`). Any of them may be called again after a crash, so give every object a name derived from what it is for. A
//! job keeps the list of steps it was created with: a step that jobs may still name stays. Queue it with
//! [`use_case::provisioning::enqueue`].

pub mod access;
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
