//! How large an upload may be, and what is in it.

use serde::{Deserialize, Serialize};

/// How large an upload and what is in it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of the upload.
    pub upload_bytes: u64,
    /// Bytes of all files together.
    pub unpacked_bytes: u64,
    /// Unpacked bytes for a byte of the upload, once there is more than 1 MiB of them.
    pub ratio: u64,
    /// Files.
    pub files: usize,
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Bytes of a path.
    pub path_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            upload_bytes: 100 * MIB,
            unpacked_bytes: 512 * MIB,
            ratio: 100,
            files: 20_000,
            file_bytes: 25 * MIB,
            path_bytes: 1_024,
        }
    }
}
