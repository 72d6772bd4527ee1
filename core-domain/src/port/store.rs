//! The storage port: repositories and units of work.
//!
//! A use case receives a [`UnitOfWork`] and never opens one. Its caller (the endpoint layer or the job worker) commits
//! the unit. All changes of a use case are in this one unit. Only `access` can create the [`RecordKey`] that opens the
//! repositories of a unit. Use cases therefore access records through scopes and write them through
//! [`crate::access::audited`].

use std::any::Any;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;

use super::caller_contexts::ApiKeyContexts;
use super::caller_contexts::SessionContexts;
use super::statement_times::StatementTime;
use crate::access::RecordKey;
use crate::kernel::{
    Bounded, Effects, Error, Page, PageQuery, PlatformId, Record, Result, StoreError, Stored,
    TextValue, Timestamp, for_each_record,
};

/// The direction of a walk through a tree of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a record to its parent, and so on. The result starts with the root.
    Ancestors,
    /// From a record to its children, and so on. The result is in breadth-first order.
    Descendants,
}

/// The records that a call can reach. The store adds the condition to every WHERE clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within<'a> {
    /// All records of the installation.
    Installation,
    /// The records of one platform. Only for records that belong to a platform.
    Platform(&'a PlatformId),
}

/// A staged record; see [`Repository::list_staged`].
#[derive(Clone, Debug, PartialEq)]
pub struct Staged<R> {
    /// The key of the record.
    pub id: String,
    /// The record; `None` if its row is damaged.
    pub record: Option<Stored<R>>,
}

/// The value of a stored field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// The value of a boolean field.
    Bool(bool),
    /// A number. A time is the number of milliseconds since the Unix epoch.
    Int(i64),
    /// The text form of an id, a name, or a value of an enumeration.
    Text(String),
}

/// The records with the same values in some fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordGroup {
    /// The values of the fields, in the order of the request.
    pub values: Vec<FieldValue>,
    /// The number of records.
    pub count: u64,
    /// The sum of the requested number over the records.
    pub sum: i64,
}

impl RecordGroup {
    /// Returns the text of the field at this position, parsed.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the value is not such a text.
    pub fn text<T: TextValue>(&self, at: usize) -> Result<T, StoreError> {
        let parsed = match self.values.get(at) {
            Some(FieldValue::Text(text)) => T::from_text(text),
            _ => None,
        };
        parsed.ok_or_else(|| unexpected_value(at))
    }

    /// Returns the number in the field at this position.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the value is not a number.
    pub fn int(&self, at: usize) -> Result<i64, StoreError> {
        match self.values.get(at) {
            Some(FieldValue::Int(number)) => Ok(*number),
            _ => Err(unexpected_value(at)),
        }
    }
}

fn unexpected_value(at: usize) -> StoreError {
    StoreError::backend(format!("the value {at} of a group has another type"))
}

/// The records of one kind inside a unit of work.
///
/// For a call within a platform, the records of other platforms do not exist.
///
/// Every method can fail with the errors of the store: [`StoreError::Unavailable`], [`StoreError::Retry`],
/// [`StoreError::Corrupt`] and [`StoreError::Backend`]. Every error except `Conflict`, `Stale` and `InvalidCursor`
/// aborts the unit: later calls fail, also the commit.
#[async_trait]
pub trait Repository<R: Record>: Send {
    /// Inserts a record with version 1.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if a unique value is taken; it names the unique index (`key` for the key itself).
    async fn insert(&mut self, record: R) -> Result<Stored<R>, StoreError>;

    /// Inserts records with version 1.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if a unique value of a record is taken; it names the index, as in
    /// [`Repository::insert`]. No record is inserted.
    async fn insert_many(&mut self, records: Vec<R>) -> Result<Vec<Stored<R>>, StoreError>;

    /// Inserts records that can conflict only with those of a concurrent unit. Either their keys were generated and
    /// they have no other unique values, or the unit has checked that the values are free. A store on a network may
    /// delay the statement until the unit reads or changes records of this kind or commits.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a record conflicts with another one. A later call of the unit can return it as well.
    async fn append_many(&mut self, records: Vec<R>) -> Result<(), StoreError>;

    /// Inserts the records whose keys are free. On a store with row locks, locks the stored records with the other
    /// keys. Returns the stored records of all keys. Units that lock different records never conflict, even in
    /// [`Mode::Write`], unless another unit reads these records without locking them. Pass the keys in sorted order, so
    /// that two units cannot wait for each other.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a concurrent unit inserted or changed one of the records.
    async fn insert_or_lock(&mut self, records: Vec<R>) -> Result<Vec<Stored<R>>, StoreError>;

    /// Locks the record with this key until the unit ends, and returns it. Another unit that locks or changes it waits until
    /// then. A unit of [`Mode::Write`] counts the lock as a change of the record: if it began earlier, it is run again.
    /// Returns `None` if there is no such record.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a concurrent unit has locked or changed the record and this unit cannot see that.
    async fn lock(&mut self, key: &str) -> Result<Option<Stored<R>>, StoreError>;

    /// Inserts the records whose keys are free and returns their keys. Skips records whose keys are taken. The kind of
    /// record has no unique value but its key, and all keys differ.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a concurrent unit inserted one of the keys and this unit cannot see it.
    async fn insert_new(&mut self, records: Vec<R>) -> Result<BTreeSet<String>, StoreError>;

    /// Replaces records that this unit has locked with [`Repository::insert_or_lock`] or [`Repository::lock`]; see
    /// [`Repository::replace_many`]. A store on a network may delay the statement as in [`Repository::append_many`].
    ///
    /// # Errors
    /// Those of [`Repository::replace_many`]. A later call of the unit can return them as well.
    async fn replace_locked(
        &mut self,
        changes: Vec<(Stored<R>, R)>,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// Returns the first staged records in the order of their keys; none if the kind of record is never staged. A store
    /// can stage new records of a kind in a separate table, so that an insert does not update the indexes of all
    /// records. Reads find staged records like all others. [`Repository::promote`] moves them to the main table.
    ///
    /// # Errors
    /// Only those of the store.
    async fn list_staged(&mut self, limit: u32) -> Result<Vec<Staged<R>>, StoreError>;

    /// Returns those of the keys that belong to staged records.
    ///
    /// # Errors
    /// Only those of the store.
    async fn staged_keys(&mut self, among: &[&str]) -> Result<BTreeSet<String>, StoreError>;

    /// Moves staged records to the main table. Returns how many of the keys were staged.
    ///
    /// # Errors
    /// Only those of the store.
    async fn promote(&mut self, keys: &[&str]) -> Result<u64, StoreError>;

    /// Deletes archived records with these keys, whose kind is otherwise never deleted. Returns their number. A database
    /// refuses to delete records that are not in an archive.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if records of this kind are never archived, or one of them is not archived.
    async fn remove_archived(&mut self, keys: &[&str]) -> Result<u64, StoreError>;

    /// Returns the records with these keys, sorted by key. Keys without a record are ignored.
    ///
    /// # Errors
    /// Only those of the store.
    async fn get_many(
        &mut self,
        within: Within<'_>,
        keys: &[&str],
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// Returns the record with this key.
    ///
    /// # Errors
    /// Only those of the store.
    async fn get(&mut self, within: Within<'_>, key: &str)
    -> Result<Option<Stored<R>>, StoreError>;

    /// Returns the first record of the query, in the order of the query.
    ///
    /// # Errors
    /// Only those of the store.
    async fn first(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
    ) -> Result<Option<Stored<R>>, StoreError>;

    /// Replaces `seen` with `next` if the record has not changed since it was read. Both must have the same key.
    ///
    /// # Errors
    /// - [`StoreError::Stale`] if the record has changed or was deleted.
    /// - [`StoreError::Conflict`] if a unique value is taken.
    async fn replace(&mut self, seen: &Stored<R>, next: R) -> Result<Stored<R>, StoreError>;

    /// Replaces several records with different keys; see [`Repository::replace`].
    ///
    /// # Errors
    /// [`StoreError::Retry`] if one of the records has changed or a unique value is taken. The unit is aborted and can
    /// be run again.
    async fn replace_many(
        &mut self,
        changes: Vec<(Stored<R>, R)>,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// Deletes the record if it has not changed since it was read.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the record has changed or was already deleted.
    async fn remove(&mut self, seen: &Stored<R>) -> Result<(), StoreError>;

    /// Deletes all records of the query. Returns their number.
    ///
    /// # Errors
    /// Only those of the store.
    async fn remove_all(&mut self, within: Within<'_>, query: &R::Query)
    -> Result<u64, StoreError>;

    /// Deletes at most `limit` records of the query, in the order of the query. Returns their number. On a store with
    /// row locks, it skips records that another unit has locked. It also deletes records that cannot be decoded. Only
    /// in a write unit.
    ///
    /// # Errors
    /// Only those of the store.
    async fn remove_first(&mut self, query: &R::Query, limit: u32) -> Result<u64, StoreError>;

    /// Deletes all records of a platform. Returns their number. Only for records that belong to a platform.
    ///
    /// # Errors
    /// Only those of the store.
    async fn remove_of_platform(&mut self, platform: &PlatformId) -> Result<u64, StoreError>;

    /// Returns the first records of the query, at most `limit`, in the order of the query. Use it for bounded work
    /// inside use cases.
    ///
    /// # Errors
    /// Only those of the store.
    async fn list(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        limit: u32,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// Returns the first records of the query like [`Repository::list`]. On a store with row locks, it locks the rows
    /// for this unit, and skips rows that another unit has locked. Only in a write unit.
    ///
    /// # Errors
    /// Only those of the store.
    async fn claim(&mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>, StoreError>;

    /// Returns a page of the records of the query. The total is counted for the first page and then passed on in the
    /// cursor.
    ///
    /// # Errors
    /// [`StoreError::InvalidCursor`] if the cursor belongs to another query.
    async fn page(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        page: &PageQuery,
    ) -> Result<Page<Stored<R>>, StoreError>;

    /// Returns the number of records of the query.
    ///
    /// # Errors
    /// Only those of the store.
    async fn count(&mut self, within: Within<'_>, query: &R::Query) -> Result<u64, StoreError>;

    /// Returns the number of records of the query and the sum of a stored number for each combination of values of the
    /// fields `by`, sorted by these values. Without fields, all records form one group. Every group has at least one
    /// record. Only for kinds of records that are never staged.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the field `sum` is not a number, if a field of `by` may be absent, or if a sum exceeds
    /// 64 bits.
    async fn sum_by(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        sum: &'static str,
        by: &[&'static str],
    ) -> Result<Vec<RecordGroup>, StoreError>;

    /// Returns the records that can be reached from the record with this key in at most `depth` steps, without the
    /// record itself. Empty if the kind of record has no parents. Stops at a cycle.
    ///
    /// # Errors
    /// Only those of the store.
    async fn walk(
        &mut self,
        within: Within<'_>,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// Returns the first records of [`Repository::walk`], as many as fit into the byte budget of a page.
    ///
    /// # Errors
    /// Only those of the store.
    async fn walk_bounded(
        &mut self,
        within: Within<'_>,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Bounded<Stored<R>>, StoreError>;
}

/// The use of a unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A single read without a transaction.
    Auto,
    /// Reads that see one consistent state of the store.
    Read,
    /// Reads and writes. Units of this mode behave as if they ran one after the other.
    Write,
    /// Reads and writes. On a store with several writers, each read sees the state that is committed when the read
    /// starts.
    ///
    /// For units whose decisions and writes depend only on the version of the row that they change, on a lock
    /// ([`Repository::lock`]) that they take first, or on a unique index. Such units do not fail because of the
    /// reads of other units. They are as atomic as units of other modes.
    ReadCommitted,
}

/// The source of units of work.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Opens a unit of work. A unit that is dropped is rolled back.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the store cannot be reached.
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError>;

    /// Opens a unit of reads that see one consistent state of the store, which may lack the latest commits. How far it may
    /// be behind is a setting of the store. Returns `None` if the store has no replica, or if its replica is too far behind
    /// or cannot be reached. A wrapper passes the call on.
    ///
    /// A unit on a replica can fail where one on the primary does not. The caller then repeats the reads in a unit of
    /// [`Store::begin`].
    async fn begin_stale(&self) -> Option<Box<dyn UnitOfWork>> {
        None
    }

    /// Waits before the `run`-th repetition (counted from 1) of a unit that ended with [`StoreError::Retry`]. The
    /// pauses are short, grow exponentially up to a limit, and are jittered, so that conflicting units drift apart. The
    /// store implements the pause because the domain has no runtime. A wrapper passes the call on.
    async fn back_off(&self, run: u32);

    /// Checks that the store can be reached. It ends within the time that a health probe can wait. A wrapper passes the
    /// call on.
    ///
    /// # Errors
    /// Only those of the store.
    async fn check(&self) -> Result<(), StoreError> {
        self.begin(Mode::Auto).await?.now().await?;
        Ok(())
    }

    /// Returns the time since the store was opened, from a monotonic clock. The domain has no clock of its own to
    /// measure for how long a unit has been repeated. A wrapper passes the call on. Default: zero.
    fn uptime(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the time after which a unit with conflicts is not run again, counted from its first run. A wrapper
    /// passes the call on. Default: no limit.
    fn retry_timeout(&self) -> Duration {
        Duration::MAX
    }

    /// Returns the current use of the store's connections, for metrics. Must be fast and must not wait. A wrapper
    /// passes the call on. Default: no pools.
    fn pools(&self) -> Vec<PoolState> {
        Vec::new()
    }

    /// Returns the state of each cell except home, for metrics. Must be fast and must not wait. A wrapper passes the call on.
    /// Default: no cells.
    fn cells(&self) -> Vec<CellState> {
        Vec::new()
    }
}

/// The state of a cell, which is a database for some of the platforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellState {
    /// The name of the cell.
    pub name: &'static str,
    /// Whether the database of the cell responds.
    pub is_reached: bool,
}

/// The current use of a pool of connections, or of another resource that units of work wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolState {
    /// The name of the pool, unique within the store.
    pub name: &'static str,
    /// Maximum number of units that can use the pool at the same time.
    pub limit: u64,
    /// The number of connections in use; `None` if it is unknown.
    pub in_use: Option<u64>,
    /// The number of open connections that are not in use; `None` if it is unknown.
    pub idle: Option<u64>,
    /// The number of units that wait for a connection; `None` if it is unknown.
    pub waiting: Option<u64>,
}

/// Statements of the host program that run in the transaction of a unit of work, see [`UnitOfWork::enlist`].
#[async_trait]
pub trait HostStatements: Send {
    /// Runs the statements. `connection` is the connection of the store's driver, for example `sqlx::PgConnection` or
    /// `rusqlite::Connection`.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a statement conflicts with a concurrent unit; [`StoreError::Backend`] if `connection`
    /// has another type.
    async fn run(&mut self, connection: &mut (dyn Any + Send)) -> Result<(), StoreError>;
}

/// One unit of work. Either all of its changes are stored, or none of them.
#[async_trait]
pub trait UnitOfWork: Send {
    /// Returns the time of this unit, which is the same for every call. It comes from the database on Postgres, and
    /// from the injected clock on other stores.
    ///
    /// # Errors
    /// Only those of the store.
    async fn now(&mut self) -> Result<Timestamp, StoreError>;

    /// Returns the effects of the unit so far. They are announced after the commit.
    fn effects(&mut self) -> &mut Effects;

    /// Returns the repositories of all records.
    fn repositories(&mut self, key: RecordKey) -> &mut dyn Repositories;

    /// Runs statements of the host program in the transaction of this unit, which must be a unit that writes. They are
    /// committed together with the unit, or not at all. Every error aborts the unit. So does dropping the call before
    /// it returns. The statements must not change the records of the suite and must not end the transaction.
    ///
    /// # Errors
    /// The error of the statements; [`StoreError::Backend`] if the store has no connection to a database.
    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        let _ = statements;
        Err(StoreError::backend(
            "this store has no connection that the host program can use",
        ))
    }

    /// Removes and returns the slowest statements of the unit so far, the slowest first. At most five. A store without
    /// statements returns none.
    fn take_slowest_statements(&mut self) -> Vec<StatementTime> {
        Vec::new()
    }

    /// Stores all changes permanently and returns the effects of the unit.
    ///
    /// # Errors
    /// - [`StoreError::Retry`] if the unit conflicts with a concurrent one. Nothing was changed, and the unit must be
    ///   run again.
    /// - [`StoreError::CommitUnknown`] if the response was lost. The unit may have been committed.
    async fn commit(self: Box<Self>) -> Result<Effects, StoreError>;

    /// Discards all changes of the unit.
    async fn rollback(self: Box<Self>);
}

/// A record that has a repository in every unit of work.
pub trait Persisted: Record {
    /// Returns the repository of this kind of record.
    fn repository(repositories: &mut dyn Repositories) -> &mut dyn Repository<Self>;
}

macro_rules! repositories {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        /// The repositories of a unit of work, one for each record, and the reads that span several records.
        pub trait Repositories: SessionContexts + ApiKeyContexts + Send {
            $(
                #[doc = concat!("The repository of [`", stringify!($record), "`].")]
                fn $accessor(&mut self) -> &mut dyn Repository<$record>;
            )+
        }

        $(
            impl Persisted for $record {
                fn repository(repositories: &mut dyn Repositories) -> &mut dyn Repository<Self> {
                    repositories.$accessor()
                }
            }
        )+
    };
}
for_each_record!(repositories);

/// Maximum number of runs of a unit of work, including the first one.
const MAX_RUNS: u32 = 20;

/// The future that the body of [`transact`] returns: `Box::pin(async move { .. })`.
pub type Work<'unit, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'unit>>;

/// A marker without content. It tells the compiler that the borrows in the body of [`transact`] outlive the unit of
/// work.
pub type Env<'unit, 'env> = PhantomData<&'unit &'env ()>;

/// Runs a write unit ([`Mode::Write`]) and commits it. If the unit conflicts with a concurrent one, it is run again
/// from the start after a pause ([`Store::back_off`]). The number of runs and the total time ([`Store::retry_timeout`])
/// are limited. Outside of the endpoint layer, this is the only way to open a write unit.
///
/// The body can run several times, so it must have no effects outside of the unit.
///
/// ```
/// # use core_domain::{kernel::{Result, Timestamp}, port::{Store, transact}};
/// async fn time_of_the_store(store: &dyn Store) -> Result<Timestamp> {
///     transact(store, |unit, _| Box::pin(async move { Ok(unit.now().await?) })).await
/// }
/// ```
///
/// # Errors
/// The error of the body, or the error of the commit: [`StoreError::Retry`] if every run had a conflict.
pub async fn transact<'env, T, F>(store: &dyn Store, body: F) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    transact_in(Mode::Write, store, body).await
}

/// Runs a write unit like [`transact`], but rolls it back if `commits` returns `false` for the value of the body.
///
/// # Errors
/// Those of [`transact`].
pub async fn transact_if<'env, T, F>(
    store: &dyn Store,
    commits: fn(&T) -> bool,
    body: F,
) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    run(Mode::Write, store, commits, body).await
}

/// Runs a unit like [`transact`], in the given mode, which must allow writes.
///
/// # Errors
/// Those of [`transact`].
pub async fn transact_in<'env, T, F>(mode: Mode, store: &dyn Store, body: F) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    run(mode, store, |_| true, body).await
}

async fn run<'env, T, F>(
    mode: Mode,
    store: &dyn Store,
    commits: fn(&T) -> bool,
    body: F,
) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    let mut runs = 1;
    let since = store.uptime();
    let has_time = || store.uptime().saturating_sub(since) < store.retry_timeout();
    loop {
        match run_once(mode, store, commits, &body).await {
            Err(Error::Store(StoreError::Retry(_))) if runs < MAX_RUNS && has_time() => {
                store.back_off(runs).await;
                runs += 1;
            }
            outcome => return outcome,
        }
    }
}

async fn run_once<'env, T, F>(
    mode: Mode,
    store: &dyn Store,
    commits: fn(&T) -> bool,
    body: &F,
) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    let mut unit = store.begin(mode).await?;
    match body(unit.as_mut(), PhantomData).await {
        Ok(value) if commits(&value) => {
            unit.commit().await?;
            Ok(value)
        }
        outcome => {
            unit.rollback().await;
            outcome
        }
    }
}
