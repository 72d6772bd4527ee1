//! What the services do. Every use case takes the caller's [`Context`](crate::kernel::Context) first, then an open
//! unit of work, then its input; it never commits.

pub mod cli;
pub mod iam;
pub mod outbox;
pub mod provisioning;
pub mod registry;
pub mod stacks;
