//! The stack registry's use cases. Templates are read by any signed-in caller and written by operators.

pub mod template;
pub mod version;

/// The most records a list of the stack registry shows; its total counts all.
pub const MAX_LISTED: u32 = 1_000;
