//! The stores of the Platform Control API Suite: one row engine contract, one description per record; memory, SQLite and Postgres.

#[cfg(feature = "conformance")]
pub mod conformance;
mod cursor;
#[cfg(feature = "conformance")]
pub mod fault;
mod filter;
mod guarded;
pub mod kind;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
mod query;
mod row_store;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod table;
pub mod tables;
mod tabular;
#[cfg(all(feature = "conformance", feature = "postgres"))]
pub mod testing;
mod unit;
mod value;

pub use cursor::CursorKey;
pub use filter::{Filter, IntoValue, Op, prefix_end};
pub use guarded::Guarded;
pub use query::{Order, Select};
pub use row_store::{RowStore, RowTx};
pub use table::{Column, Only, Table, Type, Unique, VERSION};
pub use tabular::{Reader, Tabular};
pub use unit::RecordStore;
pub use value::{Row, Value};
