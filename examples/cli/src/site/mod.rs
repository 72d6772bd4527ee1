//! The files of a site on this machine: finding, hashing, packing.

pub(crate) mod archive;
pub(crate) mod digest;
pub(crate) mod digest_cache;
pub(crate) mod exclusions;
pub(crate) mod hashing;
pub(crate) mod walk;
