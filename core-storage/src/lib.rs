//! The stores of the Platform Control API Suite: memory, SQLite and Postgres.
//!
//! Two levels. Use cases see records: [`core_domain::port::Store`], `UnitOfWork` and `Repository`, which this crate
//! implements once, in [`RecordStore`]. Engines see rows: [`RowStore`] and [`RowTx`], a dozen calls on [`Table`]s,
//! [`Filter`]s and [`Value`]s. A record is described once, and every engine follows.
//!
//! | engine | opened by | durable | processes | `now` |
//! |---|---|---|---|---|
//! | memory | [`memory::open`] | no | one | the clock given |
//! | SQLite (feature `sqlite`) | `sqlite::open` | yes | one | the clock given |
//! | Postgres (feature `postgres`) | `postgres::open` | yes | many | the database's, or the clock given |
//!
//! # How to add a record
//! 1. The record and its line in `core_domain::kernel::for_each_record`.
//! 2. Its table in `tables/<service>.rs`, about 25 lines:
//!
//! ```ignore
//! table! {
//!     Entity in "entities" {            // fields of the record, in the order of the columns; the first is `key()`
//!         id: Text,                     // a TextValue: ids, validated text, enumerations
//!         platform_id: Text,
//!         parent_id: Opt<Text>,         // Option<_>
//!         slug: Text,
//!         metadata: Json,               // anything serde can serialize and deserialize
//!         archived_at: Opt<Time>,       // Timestamp
//!         seats: Int,                   // i64, u64, i32, u32, u16, u8
//!         hidden: Bool,
//!     }
//!     computed { rank: Int = |entity| entity.rank() }       // columns to filter and sort by that are no fields
//!     unique { slug: [platform_id, slug] where [IndexPredicate::IsNull("archived_at")] }   // the name is that of the conflict
//!     index {                           // the key is added to each
//!         [platform_id, archived_at],
//!         [created_at] include [rank],  // holds the rank too: counts that filter by it read no rows
//!         [created_at] where [IndexPredicate::IsNull("archived_at")],     // partial: for queries that say the same
//!     }
//!     parent parent_id                                      // for `walk`
//!     rows append_only              // units of work and triggers refuse to change or delete one
//!     staging "new_things" index { [created_at] } // where new rows lie without the other indexes until promoted
//!     select entities                                       // fn(&EntityQuery) -> Select
//! }
//! ```
//!
//!    All parts between the columns and `select` are optional, but keep their order. A query is sorted by columns that
//!    are not nullable; the key is added. An index whose first columns a query fixes with `eq` and whose other columns
//!    are its order lets every engine stop at the limit. A disjunction is such a query when it is [`Filter::Disjoint`] and
//!    each of its parts is one.
//! 3. Its migration, written by a command from the difference between the migrated and the described schema:
//!    `cargo run -p core-storage --features sqlite --bin write-migration -- <name>` adds the next file to
//!    `migrations/sqlite` and `migrations/postgres`. Read them, and commit them with the table. `tests/it/schema.rs` fails
//!    until migrations and descriptions agree; the build fails when a dialect lacks a file.
//!
//! A change of a table is written by the same command: `--default table.column=value` gives existing rows a value in a
//! column that must not be NULL. A file never changes once it is released.
//!
//! # How to add an engine
//! Implement [`RowStore`] and [`RowTx`], return units wrapped in [`CheckedTx`], open it with `conformance::TABLES`
//! (feature `conformance`) and call `conformance::run`. Put it behind [`RecordStore`] to use it. `examples/own_backend`
//! does it on a key-value store. Another SQL database needs less: the module `sql` (feature `sql`) has the SQL and the
//! unit of work, and says how.
//!
//! # Rules that hold in every engine
//! - Write units are serializable. On Postgres one may end with `Retry`; `transact` runs it again after a pause.
//! - Any error but `Conflict`, `Stale` and `InvalidCursor` aborts a unit; what follows is refused, commit too.
//! - Text is compared by its bytes. A comparison with NULL is never true.
//! - Lists are paged by keyset, never by offset; `total` is counted for the first page and carried in the cursor. A count
//!   is remembered by engines that know when it changes ([`RowTx::commit_number`]): on SQLite as long as the rows of its
//!   platform do not, in memory as long as the table does not. On Postgres other processes commit as well: a
//!   large count of a platform's records is remembered as long as the platform's audit has no new entry, others are made
//!   each time.
//! - In a `Read` or `Write` unit a record is read by its key once; units of the other modes read it each time.

mod api_key_join;
mod back_off;
mod canonical;
mod checked_tx;
pub mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
mod counts;
mod cursor;
#[cfg(feature = "conformance")]
pub mod fault;
mod filter;
mod identity_map;
mod join;
pub mod memory;
mod page;
#[cfg(feature = "postgres")]
pub mod postgres;
mod query;
mod read;
mod read_page;
mod row_store;
mod session_join;
#[cfg(feature = "sql")]
pub mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod table;
pub mod tables;
mod tabular;
#[cfg(all(feature = "conformance", feature = "postgres"))]
pub mod testing;
mod total;
mod unit;
mod value;

pub use checked_tx::CheckedTx;
pub use cursor::CursorKey;
pub use filter::{Filter, IntoValue, Op, prefix_end};
pub use join::{Join, On, VisitJoined};
pub use page::DEFAULT_PAGE_BYTES;
pub use query::{Order, Select};
pub use row_store::{Replacement, RowStore, RowTx};
pub use table::{Column, Index, IndexPredicate, PLATFORM, Table, Type, Unique, VERSION};
pub use tabular::{Reader, Tabular};
pub use unit::RecordStore;
pub use value::{ReadRow, Row, Value, ValueRef, Visit};
