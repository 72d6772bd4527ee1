//! The data stores of the Platform Control API Suite.
//!
//! This crate saves the records of the domain (such as organizations, platforms and jobs) in one of three stores:
//! memory, SQLite or Postgres. It has two layers:
//!
//! - The record layer is for use cases. It implements the ports [`core_domain::port::Store`], `UnitOfWork` and
//!   `Repository` once for all engines, in [`RecordStore`].
//! - The row layer is for engines. An engine implements [`RowStore`] and [`RowTx`]: about a dozen calls on [`Table`]s,
//!   [`Filter`]s and [`Value`]s.
//!
//! The fields of a record are described once, with the macro `table!`. The conversion to rows, the SQL, the in-memory
//! indexes and the migrations are derived from this description. A new record needs no code in any engine.
//!
//! # The three stores
//! | engine | opened by | durable | processes | source of `now` |
//! |---|---|---|---|---|
//! | memory | [`memory::open`] | no | one | the configured clock |
//! | SQLite (feature `sqlite`) | `sqlite::open` | yes | one | the configured clock |
//! | Postgres (feature `postgres`) | `postgres::open` | yes | many | the database, or the configured clock |
//!
//! While a process has a database open, others can read it: `sqlite::open_read_only` and `postgres::open_read_only`.
//!
//! The module [`cells`] spreads the records of platforms over several Postgres databases.
//!
//! # How to add a record
//! 1. Write the record in `core-domain`, and add its line to `core_domain::kernel::for_each_record`.
//! 2. Describe its table in `tables/<service>.rs`, in about 25 lines:
//!
//! ```ignore
//! table! {
//!     Entity in "entities" {            // the record's fields in the order of the columns; the first is `key()`
//!         id: Text,                     // a TextValue: ids, validated text, enumerations
//!         platform_id: Text,
//!         parent_id: Opt<Text>,         // Option<_>
//!         slug: Text,
//!         metadata: Json,               // any type that serde can serialize and deserialize
//!         archived_at: Opt<Time>,       // Timestamp
//!         seats: Int,                   // i64, u64, i32, u32, u16, u8
//!         hidden: Bool,
//!     }
//!     computed { rank: Int = |entity| entity.rank() }       // columns to filter and sort by that are not fields
//!     unique { slug: [platform_id, slug] where [IndexPredicate::IsNull("archived_at")] }   // the conflict's name
//!     index {                           // the key is appended to each index
//!         [platform_id, archived_at],
//!         [created_at] include [rank],  // also stores the rank: counts that filter by it read no rows
//!         [created_at] where [IndexPredicate::IsNull("archived_at")],  // partial: for queries with this predicate
//!     }
//!     parent parent_id                                      // for `walk`
//!     rows append_only              // units of work and triggers refuse to change or delete rows
//!     // `rows append_only until "archives".keys_before`: until they are archived, see `ArchiveBound`
//!     staging "new_things" index { [created_at] } // new rows, until they are promoted: without the other indexes
//!     select entities                                       // fn(&EntityQuery) -> Select
//! }
//! ```
//!
//! The parts between the columns and `select` are optional, and their order is fixed. A query sorts by columns that are
//! not nullable; the key is appended. An engine stops reading at the query's limit if an index fits the query. The
//! index must start with the columns that the query fixes with `eq`, and continue with the columns of the order. This
//! also works for a disjunction if it is [`Filter::Disjoint`] and each of its parts has such an index.
//!
//! 3. Generate its migration: `cargo run -p core-storage --features sqlite --bin write-migration -- <name>`. The
//!    command compares the migrated schema with the described one, and adds the next file to `migrations/sqlite` and to
//!    `migrations/postgres`. Review the files, and commit them with the table. The test `tests/it/schema.rs` fails
//!    until the migrations and the descriptions agree. The build fails if a dialect lacks a file.
//!
//! The same command writes the migration for a changed table. `--default table.column=value` gives existing rows a
//! value in a new column that is not nullable. Never change a migration that is released.
//!
//! # How to add an engine
//! 1. Implement [`RowStore`] and [`RowTx`]. Return units of work wrapped in [`CheckedTx`], which enforces the rules of
//!    the contract.
//! 2. Test it: enable the feature `conformance`, open the engine with `conformance::TABLES`, and call
//!    `conformance::run`.
//! 3. Use it: pass it to [`RecordStore::new`].
//!
//! `examples/own_backend` is an engine on a key-value store. An engine for another SQL database needs less code. The
//! module `sql` (feature `sql`) contains the SQL and the unit of work. Its documentation describes the steps.
//!
//! # Rules that hold in every engine
//! - Any call can fail because the store is unreachable, overloaded or damaged. The `# Errors` sections list only
//!   further causes.
//! - Units in mode `Write` are serializable. On Postgres such a unit can fail with `Retry`; `transact` then runs it
//!   again after a pause.
//! - Every error except `Conflict`, `Stale` and `InvalidCursor` aborts the unit of work. All later calls fail, the
//!   commit included.
//! - Text is compared by its bytes. A comparison with NULL is never true.
//! - Lists are paged by keyset, never by offset. The `total` is counted for the first page, and the cursor carries it
//!   to the next pages.
//! - Counts are remembered as long as the engine knows that they are valid ([`RowTx::commit_number`]). On SQLite a
//!   count is valid until rows of its platform change, in memory until its table changes. On Postgres, where other
//!   processes commit as well, only large counts of a platform's records are remembered. They are valid until the
//!   platform's audit log has a new entry; all other counts are made each time.
//! - A unit in mode `Read` or `Write` reads each record by key at most once. In the other modes every read goes to the
//!   store.

mod api_key_join;
mod back_off;
mod canonical;
pub mod cells;
mod checked_tx;
pub mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod copy;
mod counts;
mod cursor;
#[cfg(feature = "conformance")]
pub mod fault;
mod filter;
mod identity_map;
mod join;
mod list_count;
pub mod memory;
mod page;
#[cfg(feature = "postgres")]
pub mod postgres;
mod query;
mod read;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod read_only;
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
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod waiting;

pub use checked_tx::CheckedTx;
pub use cursor::CursorKey;
pub use filter::{Filter, IntoValue, Op, prefix_end};
pub use join::{Join, On, VisitJoined};
pub use page::DEFAULT_PAGE_BYTES;
pub use query::{Order, Select};
pub use row_store::{GroupSum, PreparedUnit, RecordedRows, Replacement, RowStore, RowTx, UnitEnd};
pub use table::{
    ArchiveBound, Column, Index, IndexPredicate, PLATFORM, Table, Type, Unique, VERSION,
};
pub use tabular::{RowReader, Tabular};
pub use unit::RecordStore;
pub use value::{ReadRow, Row, Value, ValueRef, Visit};
