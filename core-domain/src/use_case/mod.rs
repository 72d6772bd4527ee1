//! What the services do. A use case takes the [`Context`](crate::kernel::Context), a scope that only a check can make
//! (see [`crate::access`]), the open unit of work and its input; it touches the records of its own service alone and calls
//! the use cases of others.

pub mod cli;
pub mod iam;
pub mod provisioning;
pub mod registry;
pub mod shared;
pub mod stacks;
