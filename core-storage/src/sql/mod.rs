//! The parts that SQL engines share: the generation of SQL, and a unit of work on any [`Executor`].
//!
//! # How to add an SQL database
//! 1. Choose the [`Dialect`] that it understands.
//! 2. Implement [`Executor`]: four calls that run a [`Statement`] and end a transaction.
//! 3. Implement [`RowStore`](crate::RowStore). `begin` opens a transaction in the requested mode, and returns
//!    `CheckedTx::wrap(Box::new(SqlTx::new(executor, dialect, statements, clock)), mode)`. The store keeps one
//!    [`StatementCache`] for each database, which its units share.
//! 4. At the start, in transactions that exclude other processes, run [`migrations::pending`], and then
//!    [`ddl::create`] for any extra tables.
//! 5. Run the `conformance` suite.
//!
//! An engine on Postgres with another driver finds the session settings, the meaning of errors and the migration runner
//! in the module `postgres` (feature `postgres-sql`).
//!
//! # The cost of a statement
//! A query is written as a sequence of tokens, which is the key of a cache. The text of each kind of statement is
//! generated once, and it identifies the prepared statement. Values are borrowed from the query until the driver binds
//! them. On Postgres a list of values is one array. On SQLite a list is padded to a power of two, so that lists of
//! different lengths share a text. The values of index predicates are literals, because planners use a partial index
//! only if they see them.

mod append;
mod batch;
mod conditions;
pub mod ddl;
mod dialect;
mod executor;
#[cfg(feature = "conformance")]
mod explain;
pub(crate) mod gate;
mod join;
pub mod migration_plan;
pub mod migrations;
#[cfg(feature = "postgres-sql")]
pub mod postgres;
mod recording;
mod release;
mod render;
mod statement;
mod text;
mod tx;
mod uuid_order;
mod write;

pub use dialect::Dialect;
pub use executor::Executor;
#[cfg(feature = "conformance")]
pub use explain::with_literals;
pub use statement::{Bind, Change, Cost, Statement};
#[cfg(feature = "sqlite")]
pub(crate) use text::MAX_CACHED_TEXT;
pub use text::StatementCache;
pub use tx::SqlTx;
