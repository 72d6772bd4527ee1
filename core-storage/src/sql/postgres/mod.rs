//! The parts that engines on Postgres share, whatever their driver (feature `postgres-sql`).
//!
//! An engine with another driver implements [`Executor`](super::Executor) with these parts:
//!
//! - [`RunError`] decides what a failed statement or commit means for its unit of work.
//! - [`SessionTimeouts::settings`] are the settings of a session. An engine sets them when it opens a connection, or in
//!   each transaction if others use its connections too.
//! - [`begin`] is the statement that opens a unit of work.
//! - [`migrate`] runs the migrations on a [`MigrationConnection`]. [`has_uuids`] then returns how the database stores ids, for
//!   [`StatementCache::with_uuids`](super::StatementCache::with_uuids).
//! - [`UuidTexts`] are the texts of the ids of a row.
//! - [`notify_statements`] send notices to the [`notice_channel`] of a schema.
//!
//! `adapters/sqlx` is an example.

mod begin;
mod error;
mod migrate;
mod notices;
mod session;
mod uuids;

pub use begin::{begin, now};
pub use error::{PostgresError, RunError};
pub use migrate::{MigrationConnection, MigrationTarget, has_uuids, migrate, read_applied};
pub use notices::{CURRENT_SCHEMA, notice_channel, notify_statements};
pub use session::{SessionTimeouts, check_schema_name};
pub use uuids::UuidTexts;
