//! What SQL engines share: SQL as text, and a unit of work on any [`Executor`].
//!
//! # How to add an SQL database
//! 1. Choose the [`Dialect`] it understands.
//! 2. Implement [`Executor`]: four calls that run a [`Statement`] and end a transaction.
//! 3. Implement [`RowStore`](crate::RowStore): `begin` opens a transaction in the wanted mode and answers
//!    `CheckedTx::wrap(Box::new(SqlTx::new(executor, dialect, texts, clock)), mode)`. The [`Texts`] are kept by the store:
//!    one for each database, shared by its units.
//! 4. At the start, in one transaction that keeps other processes out: run [`migrations::pending`], then
//!    [`ddl::create`] for the tables the engine is opened with besides.
//! 5. Run the `conformance` suite on it.
//!
//! # What a statement costs
//! A query is written as tokens, and the tokens are looked up: the text of a shape is made once, and the prepared
//! statement is found by it. Values lie where the query keeps them until the driver binds them. A list of values is one
//! array on Postgres; on SQLite it is padded to a power of two, so that lists of many lengths share a text. The texts of
//! index predicates are literals, since planners use a partial index only when they see them.

mod append;
mod batch;
mod conditions;
pub mod ddl;
mod dialect;
mod executor;
#[cfg(feature = "conformance")]
mod explain;
mod join;
pub mod migrations;
mod render;
mod statement;
mod text;
mod tx;
mod write;

pub use dialect::Dialect;
pub use executor::Executor;
#[cfg(feature = "conformance")]
pub use explain::with_literals;
pub use statement::{Bind, Change, Cost, Statement};
#[cfg(feature = "sqlite")]
pub(crate) use text::MAX_CACHED_TEXT;
pub use text::Texts;
pub use tx::SqlTx;
