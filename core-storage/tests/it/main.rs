//! Tests of the stores through their public interface.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests do"
)]

mod back_off;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod cell_hints;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod cell_outage;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod cells;
#[cfg(feature = "sqlite")]
mod compatible_migrations;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod copy;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod engines;
#[cfg(all(feature = "conformance", feature = "sqlite"))]
mod group_commit;
#[cfg(all(feature = "conformance", feature = "sql"))]
mod list_counts;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod locked_rows;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod logs;
#[cfg(feature = "conformance")]
mod memory_plan;
#[cfg(feature = "conformance")]
mod memory_units;
mod migrating;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod move_queries;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod moves;
#[cfg(all(feature = "sqlite", unix))]
mod permissions;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_dropped;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_failover;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_notices;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_patroni;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_pgbouncer;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_plans;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_prepared;
#[cfg(all(feature = "conformance", feature = "postgres"))]
mod postgres_replica;

#[cfg(all(feature = "conformance", feature = "postgres-tls"))]
mod postgres_tls;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod read_only;
#[cfg(feature = "conformance")]
mod record_layer;
#[cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]
mod schema;
#[cfg(all(feature = "conformance", feature = "sql"))]
mod sql;
#[cfg(all(feature = "conformance", feature = "sqlite"))]
mod sqlite_limits;
#[cfg(all(feature = "conformance", feature = "sqlite"))]
mod write_ahead_log;
#[cfg(feature = "sqlite")]
mod write_migration;
