//! The stores through their public interface.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests do"
)]

mod back_off;

#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod engines;
#[cfg(feature = "conformance")]
mod memory_plan;
#[cfg(all(feature = "sqlite", unix))]
mod permissions;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod schema;
#[cfg(feature = "sqlite")]
mod write_migration;
