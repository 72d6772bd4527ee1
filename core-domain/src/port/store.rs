//! The storage port: repositories and units of work.
//!
//! A use case is given a [`UnitOfWork`] and never opens one; whoever calls it (the endpoint layer, the job worker)
//! commits. Everything a use case changes is in that one unit. The repositories of a unit are opened with a
//! [`RecordKey`], which `access` alone can make: use cases reach records through scopes and write them through
//! [`crate::access::audited`].

use std::any::Any;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;

use super::caller_contexts::ApiKeyContexts;
use super::caller_contexts::SessionContexts;
use crate::access::RecordKey;
use crate::kernel::{
    Bounded, Effects, Error, Page, PageRequest, PlatformId, Record, Result, StoreError, Stored,
    Timestamp, for_each_record,
};

/// Which way to walk a tree of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From parent to parent, root first.
    Ancestors,
    /// From child to child, breadth first.
    Descendants,
}

/// Whose records a call can reach. The store adds it to every WHERE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within<'a> {
    /// Anybody's.
    Installation,
    /// Those of one platform; only for records that have one.
    Platform(&'a PlatformId),
}

/// A staged record.
#[derive(Clone, Debug, PartialEq)]
pub struct Staged<R> {
    /// What it is found by.
    pub id: String,
    /// The record; `None` when its row is damaged.
    pub record: Option<Stored<R>>,
}

/// The records of one kind, inside one unit of work.
///
/// A record of another platform than the one a call is within does not exist for it.
/// Every error but `Conflict`, `Stale` and `InvalidCursor` ends the unit: what follows is refused, commit too.
#[async_trait]
pub trait Repository<R: Record>: Send {
    /// Adds a record; it starts at version 1.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] names the unique index that is taken (`key` for the key itself).
    async fn insert(&mut self, record: R) -> Result<Stored<R>, StoreError>;

    /// Adds records; each starts at version 1.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] as for [`Repository::insert`], for the first record that meets one; nothing was added.
    async fn insert_many(&mut self, records: Vec<R>) -> Result<Vec<Stored<R>>, StoreError>;

    /// Adds records that meet no other: their keys were generated for them and they have no other unique values, or the
    /// unit has looked for others and found none, so that only a concurrent unit can be in the way. A store behind a network
    /// may keep them back until the unit reads or changes records of their kind or commits.
    ///
    /// # Errors
    /// [`StoreError::Retry`], here or from what follows, when a record met another after all.
    async fn append_many(&mut self, records: Vec<R>) -> Result<(), StoreError>;

    /// Adds the records whose keys are free, and locks those that are stored under the other keys, on a store with row locks.
    /// Returns what is stored under all of the keys. Units that lock different records never conflict, not even in
    /// [`Mode::Write`], as long as nobody reads the records otherwise. The keys are given in order, so that no two units
    /// wait for each other.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when a concurrent unit added or changed one of them.
    async fn insert_or_lock(&mut self, records: Vec<R>) -> Result<Vec<Stored<R>>, StoreError>;

    /// As [`Repository::replace_many`], for records that this unit has locked ([`Repository::insert_or_lock`]). A store
    /// behind a network may keep them back as [`Repository::append_many`] does.
    ///
    /// # Errors
    /// As [`Repository::replace_many`], here or from what follows.
    async fn replace_locked(
        &mut self,
        changes: Vec<(Stored<R>, R)>,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// The first staged records, in the order of their keys; none of a kind that is never staged. Where a store stages
    /// the records of a kind, new ones lie apart until they are promoted: reads find them all the same, and whoever adds
    /// one does not pay for the indexes of them all.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn staged(&mut self, limit: u32) -> Result<Vec<Staged<R>>, StoreError>;

    /// Which of these keys are those of staged records.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn staged_keys(&mut self, among: &[&str]) -> Result<BTreeSet<String>, StoreError>;

    /// Puts staged records among the others; tells how many of them were staged.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn promote(&mut self, keys: &[&str]) -> Result<u64, StoreError>;

    /// The records with these keys, sorted by key; those that do not exist are left out.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn get_many(
        &mut self,
        within: Within<'_>,
        keys: &[&str],
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// The record with this key.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn get(&mut self, within: Within<'_>, key: &str)
    -> Result<Option<Stored<R>>, StoreError>;

    /// The first record that answers the query, in the query's order.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn first(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
    ) -> Result<Option<Stored<R>>, StoreError>;

    /// Puts `next` in the place of `seen`, provided nobody changed it in between. The key must be the same.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when somebody did; [`StoreError::Conflict`] when a unique index is taken.
    async fn replace(&mut self, seen: &Stored<R>, next: R) -> Result<Stored<R>, StoreError>;

    /// As [`Repository::replace`], for many records with different keys.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when somebody changed one of them in between, or a unique index is taken: the unit is over,
    /// and may be run again.
    async fn replace_many(
        &mut self,
        changes: Vec<(Stored<R>, R)>,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// Removes the record, provided nobody changed it in between.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when somebody did.
    async fn remove(&mut self, seen: &Stored<R>) -> Result<(), StoreError>;

    /// Removes every record that answers the query; tells how many.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn remove_all(&mut self, within: Within<'_>, query: &R::Query)
    -> Result<u64, StoreError>;

    /// Removes the first records that answer the query, in the query's order, at most `limit`. Returns their number. On a
    /// store with row locks, records that another unit holds are left out. Records need not be readable. Only in a write unit.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn remove_first(&mut self, query: &R::Query, limit: u32) -> Result<u64, StoreError>;

    /// Removes every record of a platform; tells how many. For records that belong to a platform.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn remove_of_platform(&mut self, platform: &PlatformId) -> Result<u64, StoreError>;

    /// The first records that answer the query, in the query's order. For bounded work inside use cases.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn list(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        limit: u32,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// As [`Repository::list`], but on a store with row locks the rows stay locked for this unit, and rows that another
    /// unit holds are left out instead of waited for. For claims; only in a write unit.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn claim(&mut self, query: &R::Query, limit: u32) -> Result<Vec<Stored<R>>, StoreError>;

    /// A page of the records that answer the query. The total is counted for the first page and carried in the cursor.
    ///
    /// # Errors
    /// [`StoreError::InvalidCursor`] when the cursor is not one of this query.
    async fn page(
        &mut self,
        within: Within<'_>,
        query: &R::Query,
        page: &PageRequest,
    ) -> Result<Page<Stored<R>>, StoreError>;

    /// How many records answer the query.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn count(&mut self, within: Within<'_>, query: &R::Query) -> Result<u64, StoreError>;

    /// The records reached from the one with this key, itself left out, at most `depth` steps away. Empty for a record
    /// without parents; ends on a cycle.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn walk(
        &mut self,
        within: Within<'_>,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Stored<R>>, StoreError>;

    /// As [`Repository::walk`], for an answer: keeps only the first records, as many as the byte budget of a page allows.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn walk_bounded(
        &mut self,
        within: Within<'_>,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Bounded<Stored<R>>, StoreError>;
}

/// How a unit of work will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A single read; no transaction is opened.
    Auto,
    /// Reads that must agree with each other.
    Read,
    /// Reads and writes; units of this mode behave as if they ran one after the other.
    Write,
    /// Reads and writes, and on a store with several writers each read sees what is committed when it starts. For units
    /// whose every write is guarded by the version of the row it changes, a claim's lock or a unique index, and that
    /// decide by nothing else. They do not fail for what others read; units of this mode are as atomic as others.
    ReadCommitted,
}

/// Where units of work come from.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Opens a unit of work. Dropping it undoes what it did.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the store cannot be reached.
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError>;

    /// Waits before the `run`-th repetition (from 1) of a unit that ended with [`StoreError::Retry`]. The pauses are
    /// short, grow exponentially up to a cap and are jittered, so that units that conflict drift apart. A pause belongs
    /// to the store because the domain knows no runtime; a wrapper passes the call on.
    async fn back_off(&self, run: u32);

    /// Checks that the store can be reached, within a time that a probe can wait. A wrapper passes the call on.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot.
    async fn check(&self) -> Result<(), StoreError> {
        self.begin(Mode::Auto).await?.now().await?;
        Ok(())
    }

    /// Returns the time since the store was opened, by a clock that never goes back: the domain has no clock of its own to
    /// measure how long a unit has been run again. A wrapper passes the call on. Zero unless implemented.
    fn uptime(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the time after which a unit that meets conflicts is not run again, counted from its first run. A wrapper
    /// passes the call on. No limit unless implemented.
    fn retry_timeout(&self) -> Duration {
        Duration::MAX
    }
}

/// Statements of the host program that run in the transaction of a unit of work, see [`UnitOfWork::enlist`].
#[async_trait]
pub trait HostStatements: Send {
    /// Runs the statements. `connection` is the connection of the store's driver, for example `sqlx::PgConnection` or
    /// `rusqlite::Connection`.
    ///
    /// # Errors
    /// [`StoreError::Retry`] if a statement conflicts with a concurrent unit; [`StoreError::Backend`] if `connection` has
    /// another type.
    async fn run(&mut self, connection: &mut (dyn Any + Send)) -> Result<(), StoreError>;
}

/// One unit of work: everything in it happens, or nothing does.
#[async_trait]
pub trait UnitOfWork: Send {
    /// The instant of this unit: the same however often it is asked for. The database's on Postgres, the
    /// injected clock's elsewhere.
    ///
    /// # Errors
    /// [`StoreError`] when the store failed.
    async fn now(&mut self) -> Result<Timestamp, StoreError>;

    /// What follows from the unit so far. Announced after the commit.
    fn effects(&mut self) -> &mut Effects;

    /// The repositories of all records.
    fn repositories(&mut self, key: RecordKey) -> &mut dyn Repositories;

    /// Runs statements of the host program in the transaction of this unit, which must be a unit that writes. They are
    /// committed together with the unit, or not at all. Every error aborts the unit. So does dropping the call before it
    /// returns. The statements must not change the records of the suite and must not end the transaction.
    ///
    /// # Errors
    /// The error of the statements; [`StoreError::Backend`] if the store has no connection to a database.
    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        let _ = statements;
        Err(StoreError::backend(
            "this store has no connection that the host program can use",
        ))
    }

    /// Makes everything permanent and answers what follows from it.
    ///
    /// # Errors
    /// [`StoreError::Retry`] when the unit conflicts with a concurrent one and must be run again; nothing was changed.
    /// [`StoreError::CommitUnknown`] when the answer was lost: it may have been committed.
    async fn commit(self: Box<Self>) -> Result<Effects, StoreError>;

    /// Undoes everything.
    async fn rollback(self: Box<Self>);
}

/// A record that a unit of work has a repository of.
pub trait Persisted: Record {
    /// Its repository.
    fn repository(repositories: &mut dyn Repositories) -> &mut dyn Repository<Self>;
}

macro_rules! repositories {
    ($($accessor:ident: $record:ty $(, $id:ident $doc:literal)?;)+) => {
        /// The repositories of a unit of work, one for each record, and what is read of several at once.
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

/// How often a unit of work is run at most, the first run included.
const MAX_RUNS: u32 = 20;

/// What the body of [`transact`] answers: `Box::pin(async move { .. })`.
pub type Work<'unit, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'unit>>;

/// Tells the compiler that what the body of [`transact`] borrows outlives the unit of work. Carries nothing.
pub type Env<'unit, 'env> = PhantomData<&'unit &'env ()>;

/// Runs a write unit ([`Mode::Write`]) and commits it; runs it again from the start after a pause ([`Store::back_off`]) when it conflicts
/// with a concurrent one, a bounded number of times and for a bounded time ([`Store::retry_timeout`]). The only way to open a write unit outside the endpoint layer. The
/// body must be fit to run again: no effect outside the unit.
///
/// ```
/// # use core_domain::{kernel::{Result, Timestamp}, port::{Store, transact}};
/// async fn time_of_the_store(store: &dyn Store) -> Result<Timestamp> {
///     transact(store, |unit, _| Box::pin(async move { Ok(unit.now().await?) })).await
/// }
/// ```
///
/// # Errors
/// What the body answers, or why the store could not commit: [`StoreError::Retry`] when every run met a conflict.
pub async fn transact<'env, T, F>(store: &dyn Store, body: F) -> Result<T, Error>
where
    F: for<'unit> Fn(&'unit mut dyn UnitOfWork, Env<'unit, 'env>) -> Work<'unit, T> + Send + Sync,
{
    transact_in(Mode::Write, store, body).await
}

/// As [`transact`]; undoes the unit when `commits` says no to what the body answers.
///
/// # Errors
/// As [`transact`].
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

/// As [`transact`], in a mode that writes.
///
/// # Errors
/// As [`transact`].
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
