//! The use cases of the stack registry. Any signed-in caller can read templates; only operators can change them.

pub mod template;
pub mod version;

/// Maximum number of records in a list of the stack registry. The `total` of the list counts all records.
pub const MAX_LISTED: u32 = 1_000;
