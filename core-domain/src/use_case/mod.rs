//! Use cases: the operations of the services.
//!
//! A use case takes the [`Context`](crate::kernel::Context), a scope that proves an access check (see
//! [`crate::access`]), the open unit of work and its input. It accesses only records of its own service and calls the
//! use cases of other services.

pub mod billing;
pub mod cli;
pub mod iam;
pub mod provisioning;
pub mod registry;
pub mod shared;
pub mod stacks;
