//! UUIDs with readable names.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Returns a UUID that depends only on the name. If the name has at most 16 bytes, they are the digits of the UUID:
/// `702d3100-0000-0000-0000-000000000000` for `p-1`. Such UUIDs sort as their names do. A longer name is hashed.
#[must_use]
pub fn named_uuid(name: &str) -> String {
    let mut bytes = [0; 16];
    match bytes.get_mut(..name.len()) {
        Some(start) => start.copy_from_slice(name.as_bytes()),
        None => bytes.copy_from_slice(&Sha256::digest(name)[..16]),
    }
    Uuid::from_bytes(bytes).to_string()
}
